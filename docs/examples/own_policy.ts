// A context policy that speaks to Rewindow over JSON lines: old tool results are blanked, in TypeScript.
//
//     rewindow compare SESSIONS -p full-history -p "command:node --experimental-strip-types docs/examples/own_policy.ts"
import { createInterface } from "node:readline";

interface Message { role: string; content: string; tool_call_id?: string; tool_calls?: unknown[] }
type Asked =
  | { type: "hello"; protocol: number }
  | { type: "session"; session: string; shape: "openai" | "anthropic"; persists: boolean }
  | { type: "step"; step: number; window: number; tokens?: number; refused: number; messages: Message[] };

const KEPT = 3;
const answer = (value: object): boolean => process.stdout.write(JSON.stringify(value) + "\n");

for await (const line of createInterface({ input: process.stdin })) {
  const asked: Asked = JSON.parse(line);
  if (asked.type === "hello") answer({ protocol: 1 });
  if (asked.type !== "step") continue;
  const results = asked.messages.filter((message: Message) => message.role === "tool");
  for (const message of results.slice(0, -KEPT)) message.content = "[old output]";
  answer({ messages: asked.messages });
}
