import { LineCounter } from "yaml";
import { expect, it } from "vitest";
import { summarizeProblems, problem, type ProblemText } from "../../../src/config/problems.ts";

const spot = { source: { file: "f", text: "x", lines: new LineCounter() }, start: 0, end: 1 };
spot.source.lines.addNewLine(0);

/** An example of every type that the factories accept. */
const say = (factory: (...args: never[]) => ProblemText) => {
  for (const args of [
    ["a", "b", "c", []],
    ["a", spot, "f"],
    ["a", []],
    [["a", "b"]],
    ["a", "provider", "store"],
    ["a", 2, 1],
    ["error", "m", "h"],
  ])
    try {
      const words = factory(...(args as never[]));
      if (!/undefined|\[object/.test(JSON.stringify(words))) return words;
    } catch {}
  throw new Error("no words");
};

it("IDs are stable slugs for CI scripts: this test shows a changed one", () => {
  const ids = [...new Set(Object.values(problem).map((f) => say(f as never).id))].sort();
  expect(ids.every((id) => /^(config|plugin|secret)\/[a-z0-9-]+$/.test(id))).toBe(true);
  expect(ids.join("\n")).toMatchInlineSnapshot(`
    "config/account-cycle
    config/account-too-deep
    config/admin-exposed
    config/alias-cycle
    config/bad-certificate
    config/bad-name
    config/bad-reference
    config/bad-value
    config/bad-variable
    config/bare-variable
    config/client-credential
    config/defined-twice
    config/duplicate-key
    config/empty-file
    config/field-with-credentials
    config/file-missing
    config/file-too-large
    config/file-unreadable
    config/forbidden-key
    config/include-folder
    config/include-nested
    config/include-path
    config/include-star
    config/interpolated-key
    config/interpolated-use
    config/isolated-builtin
    config/isolated-kind
    config/missing-key
    config/mode-without-socket
    config/nested-reference
    config/network-not-blocked
    config/no-admin-listener
    config/no-provider-left
    config/not-a-file
    config/not-a-map
    config/not-one-of
    config/not-utf8
    config/not-with-socket
    config/recursive-alias
    config/retention
    config/same-credential
    config/same-listener
    config/same-token
    config/similar-names
    config/socket-path
    config/star-without-match
    config/syntax
    config/too-deep
    config/too-long
    config/too-many-values
    config/two-stars
    config/unclosed-reference
    config/unknown-account
    config/unknown-alias
    config/unknown-class
    config/unknown-frontend
    config/unknown-key
    config/unknown-kind
    config/unknown-model
    config/unknown-provider
    config/unknown-tag
    config/unmounted-candidate
    config/unmounted-model
    config/unreachable-model
    config/unsafe-number
    config/unset-variable
    config/unused-weight
    config/workers
    config/wrong-type
    config/zero-timeout
    plugin/api-mismatch
    plugin/bad-definition
    plugin/bad-schema
    plugin/bad-specifier
    plugin/changed
    plugin/check
    plugin/check-failed
    plugin/import-failed
    plugin/import-slow
    plugin/lock-unreadable
    plugin/no-default-export
    plugin/not-allowed
    plugin/not-found
    plugin/not-locked
    plugin/setup-failed
    plugin/setup-slow
    plugin/since-mismatch
    plugin/types
    plugin/unknown-member
    plugin/wrong-kind
    secret/literal"
  `);
});

it("sentences are one line, start in lowercase, and end without a period", () => {
  for (const factory of Object.values(problem)) {
    const { message, hint } = say(factory as never);
    for (const text of [message, hint ?? "x"]) {
      expect(text).not.toMatch(/\n|\.$|undefined|\[object/);
      expect(text).not.toMatch(/^[A-Z](?!TF)/);
    }
  }
});

it("are counted", () => {
  const of = (...list: ProblemText["severity"][]) =>
    summarizeProblems(list.map((severity) => ({ severity })));
  expect(of("error", "warning", "error", "note")).toBe("2 errors, 1 warning, 1 note");
  expect(of()).toBe("");
});
