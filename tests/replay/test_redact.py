"""Redaction: each kind of secret goes, sizes and sameness stay, and nothing else changes."""

from __future__ import annotations

from typing import Any

import pytest

from replay.redact import Redactor

SECRETS = [
    ("key", "sk-ant-api03-abcdefghij1234567890"), ("key", "sk-proj-abcdefghij1234567890abcd"), ("key", "AKIAIOSFODNN7ABCDEFG"),
    ("key", "ghp_abcdefghijklmnopqrstuvwxyz0123456789"), ("key", "github_pat_11ABCDEFG0abcdefghijklmnopqrstuv"),
    ("key", "glpat-abcdefgh12345678"), ("key", "xoxb-1234567890-abcdef"), ("key", "AIzaSyA1234567890abcdefghijklmnopqrstuv"),
    ("key", "npm_abcdefghijklmnopqrstuvwxyz0123456789"), ("key", "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"),
    ("key", "sk_live_abcdefgh12345678"), ("key", "123456789:AAabcdefghijklmnopqrstuvwxyz1234567"),
    ("key", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"),
    ("email", "alice.b+c@corp-mail.co.uk"), ("email", "a1@b.io"), ("email", "12345+bob@users.noreply.github.com"),
    ("ip", "10.1.2.3"), ("ip", "192.168.100.200"), ("ip", "fe80::1:2:3:4"), ("ip", "2001:db8:85a3::8a2e:370:7334")]


@pytest.mark.parametrize(("kind", "secret"), SECRETS)
@pytest.mark.parametrize("frame", ["{}", "before {} after", '"{}"', "({}), [{}]", "a\n{}\nb"])
def test_a_secret_is_replaced_in_its_length(kind: str, secret: str, frame: str) -> None:
    """Alone, in a sentence, quoted, twice: none of it is left, the text around it is, and it is counted."""
    text = frame.replace("{}", secret)
    redactor = Redactor()
    done = redactor.text(text)

    assert secret not in done
    assert len(text) == len(done)
    assert frame.split("{}")[0] == done[:len(frame.split("{}")[0])]
    assert frame.count("{}") == redactor.counts[kind]


@pytest.mark.parametrize(("text", "secret"), [
    ('password = "hunter2hunter2"', "hunter2hunter2"), ("API_KEY: 'abcd1234efgh5678'", "abcd1234efgh5678"),
    ('{\\"client_secret\\": \\"abcd1234efgh\\"}', "abcd1234efgh"), ("AccessToken=abc123def456ghi", "abc123def456ghi"),
    ("postgres://app:s3cr3t-pass@db.host/x", "s3cr3t-pass"), ("Authorization: Bearer abcdef0123456789abcd", "abcdef0123456789abcd")])
def test_an_assigned_secret_goes_and_its_name_stays(text: str, secret: str) -> None:
    """Assignments, headers, addresses with a password."""
    done = Redactor().text(text)

    assert secret not in done
    assert text.split(secret) == [done[:text.index(secret)], done[text.index(secret) + len(secret):]]


def test_private_keys_lose_their_content() -> None:
    """The frame of a key block stays, so that the reader sees what stood there."""
    text = "-----BEGIN RSA PRIVATE KEY-----\nMIIEabc123\ndef456==\n-----END RSA PRIVATE KEY-----"
    done = Redactor().text(text)

    assert "-----BEGIN RSA PRIVATE KEY-----\nXXXXXXXXXX\nXXXXXX==\n-----END RSA PRIVATE KEY-----" == done


@pytest.mark.parametrize("text", [
    "git@github.com:team/tool.git", "noreply@anthropic.com", "someone@example.com", "127.0.0.1 0.0.0.0 ::1 255.255.255.0",
    "v1.2.3.4", "1.2.3", "12:34:56", "std::string", "lodash@4.17.21", "uses: actions/checkout@v4", "max_tokens: 200000",
    "token = get_token()", "5fbb7496ee1f03a9e5d4c3b2a1908f7e6d5c4b3a", "risk-abcdefghijklmnopqrstuvwxyz1234", "/home/user/x",
    "/Users/runner/work", "password: str", "a@b", "@app.route", "toolu_01LQ76drz1fWTLiwC1Lhvheb",
    "call_2QGQAJmQIMaiqtC7O9GuzOBK", "456d99d0-d27e-420a-aad7-31fcf398fcfb"])
def test_what_is_no_secret_stays(text: str) -> None:
    """Versions, hashes, times, ids of calls and sessions, names of no one."""
    redactor = Redactor()
    redactor.learn(text)

    assert text == redactor.text(text)
    assert [] == redactor.report()


@pytest.mark.parametrize("path", ["/home/{}/src", "/Users/{}/x", "C:\\Users\\{}\\x", 'C:\\\\Users\\\\{}\\\\x', "-Users-{}-Work-p"])
@pytest.mark.parametrize("name", ["alice", "bob2", "xi"])
def test_user_names_of_home_folders(path: str, name: str) -> None:
    """The name goes wherever it stands as a word, short names only in paths."""
    text = f"{path.replace('{}', name)} drwxr-xr-x {name} staff {name}s {name}_x"
    redactor = Redactor()
    redactor.learn({"cwd": [text]})
    done = redactor.text(text)

    assert len(text) == len(done)
    assert name not in done.split(" ")[0]
    assert (name in done.split(" ")) == (len(name) < 4)
    assert f"{name}s" in done


def test_same_secrets_have_same_placeholders_and_others_others() -> None:
    """Over texts, keys and lists of a session."""
    addresses = [f"person{n}@mail.corp" for n in range(60)]
    redactor = Redactor()
    first = redactor.value({"a": addresses, addresses[0]: {"b": (addresses[1], 5, None)}})
    again = redactor.value(addresses)

    assert first["a"] == again
    assert 60 == len(set(again))
    assert {again[0], "a"} == set(first)
    assert [again[1], 5, None] == first[again[0]]["b"]
    assert ["122 e-mail addresses (60 different)"] == redactor.report()


def test_a_second_run_changes_nothing() -> None:
    """Placeholders are no secrets."""
    text = " ".join(secret for _, secret in SECRETS) + ' /home/alice/x password="abc123def456" '
    first = Redactor()
    first.learn(text)
    done = first.text(text)
    second = Redactor()
    second.learn(done)

    assert done == second.text(done)
    assert [] == second.report()


@pytest.mark.parametrize("value", [None, 5, True, 1.5, [], {}, "", "ab", [[["x"]]]])
def test_other_values_stay(value: Any) -> None:
    """Numbers, nothing, short texts and containers."""
    assert value == Redactor().value(value)
