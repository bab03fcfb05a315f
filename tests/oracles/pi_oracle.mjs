// What Pi's own compaction code does with the histories; needs the package @earendil-works/pi-coding-agent.
//
// `python tests/oracles/histories.py 5000 | node tests/oracles/pi_oracle.mjs golden` writes the golden data;
// `golden NAME` that of other histories (`thought`, `sessions`); with `show SEED` one outcome is printed.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const root = process.env.ORACLES_NODE ?? join(here, "node_modules");
const folder = join(root, "@earendil-works", "pi-coding-agent");
const { prepareCompaction } = await import(pathToFileURL(join(folder, "dist", "core", "compaction", "compaction.js")));
const { version } = createRequire(import.meta.url)(join(folder, "package.json"));

function message(made) {
	if (made.role === "user") return { role: "user", content: [{ type: "text", text: made.text }], timestamp: 0 };
	if (made.role === "tool")
		return {
			role: "toolResult", toolCallId: made.call, toolName: "run", content: [{ type: "text", text: made.text }],
			isError: false, timestamp: 0,
		};
	const calls = made.calls.map((id) => ({ type: "toolCall", id, name: "run", arguments: { n: 1 } }));
	const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost: {} };
	return {
		role: "assistant", content: [{ type: "text", text: made.text }, ...calls], usage, stopReason: "stop", timestamp: 0,
	};
}

// After every few requests a compaction is asked for: which messages are left, and what each summary is made from.
function outcome(history) {
	const { messages, settings } = history;
	const stops = [...messages.keys()].filter((i) => messages[i].role === "assistant").concat(messages.length);
	const entries = [];
	const steps = [];
	let taken = 0;
	stops.forEach((stop, request) => {
		for (; taken < stop; taken++)
			entries.push({ type: "message", id: `${taken}`, parentId: entries.at(-1)?.id ?? null, timestamp: "",
				message: message(messages[taken]) });
		if ((request + 1) % settings.every) return;
		const plan = prepareCompaction(entries, { enabled: true, reserveTokens: 0, keepRecentTokens: settings.tail });
		if (!plan) return steps.push([]);
		const names = (list) => list.map((m) => entries.find((e) => e.message === m).id);
		steps.push([plan.firstKeptEntryId, names(plan.messagesToSummarize), names(plan.turnPrefixMessages)]);
		entries.push({ type: "compaction", id: `S${request}`, parentId: entries.at(-1).id, timestamp: "", summary: "s",
			firstKeptEntryId: plan.firstKeptEntryId, tokensBefore: 0 });
	});
	return steps;
}

const histories = JSON.parse(readFileSync(0, "utf8"));
if (process.argv[2] === "show") {
	const history = histories[Number(process.argv[3])];
	console.log(`${JSON.stringify(history)}\n${JSON.stringify(outcome(history))}`);
} else {
	const digest = (value) => createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 8);
	const digests = histories.map((history) => digest(outcome(history)));
	const lines = Array.from({ length: Math.ceil(digests.length / 10) }, (_, i) => digests.slice(10 * i, 10 * i + 10).join(" "));
	const name = process.argv[3] ?? "histories";
	const title = `# Pi ${version}: outcome of each of the ${name}, in order`;
	writeFileSync(join(here, name === "histories" ? "pi.txt" : `pi-${name}.txt`), [title, ...lines, ""].join("\n"));
}
