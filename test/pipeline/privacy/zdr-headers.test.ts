// Under Service-ZDR, client headers are sent only if the allowlist names them, on every path.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ZDR_ALLOWED_HEADERS } from "../../../src/protocols/messages/zdr-allowed-fields.ts";
import { ROADS, roads, TARGETS, type Roads } from "../protocol-pairs.ts";

let all: Roads;
beforeAll(async () => {
  all = await roads();
});
afterAll(() => all[Symbol.asyncDispose]());

const dataPolicy = {
  retention: { kind: "days", days: 30 },
  trains: "no",
  zeroWhen: "credential",
} as const;
/** A unique word. */
const MARK = "xq7mark";

/**
 * Every header that some protocol forwards, and some that clients send, each with a value that is
 * not on the allowlist.
 */
const NAMES: readonly string[] = [
  ...new Set([
    ...Object.values(TARGETS).flatMap(({ headers }) =>
      (headers?.request ?? []).map((name) => name.replace("*", "session-id")),
    ),
    ..."user-agent referer origin x-request-id x-session-id traceparent baggage openai-organization".split(
      " ",
    ),
  ]),
];
const marked = Object.fromEntries(NAMES.map((name) => [name, `${MARK}-${name}`]));

const headsOf = (): string =>
  JSON.stringify(all.up.requests.map(({ headers, path }) => [headers, path]));

describe.each(ROADS)("from %s to %s", (from, into) => {
  it("sends none of the client's headers under `required`", async () => {
    await using road = await all.open(from, { dataPolicy });
    const fields = { model: `${into}/m` };
    const plain = await road.send(into, fields, marked, `/toy?beta=true&q=${MARK}`);
    const secret = await road.send(
      into,
      fields,
      { ...marked, "service-zdr": "required" },
      `/toy?beta=true&q=${MARK}`,
    );
    expect(secret.status).toBe(plain.status);
    expect(headsOf()).not.toContain(MARK);
  });
});

describe("a header on the allowlist", () => {
  it("is sent, value by value, and other values are reported", async () => {
    await using road = await all.open("messages", { dataPolicy });
    const beta = `interleaved-thinking-2025-05-14, ${MARK}-2026, claude-code-20250219`;
    const sent = await road.send(
      "messages",
      {},
      {
        "service-zdr": "required",
        "anthropic-version": "2023-06-01",
        "anthropic-beta": beta,
        "x-app": "cli",
      },
    );
    expect(sent.status).toBe(200);
    const [{ headers } = { headers: {} as never }] = all.up.requests;
    expect(headers["anthropic-beta"]).toBe("interleaved-thinking-2025-05-14,claude-code-20250219");
    expect(headers["anthropic-version"]).toBe("2023-06-01");
    expect(headers["x-app"]).toBeUndefined();
    expect(sent.warnings).toContain("zdr_unreviewed_header;field=anthropic-beta");
  });

  it("is not checked for requests that are not private", async () => {
    await using road = await all.open("messages", { dataPolicy });
    await road.send("messages", {}, { "anthropic-beta": `${MARK}-2026`, "x-app": "cli" });
    expect(headsOf()).toContain(MARK);
  });
});

it("every allowed beta is known to the official SDK, or has a source of its own", () => {
  const types = readFileSync(
    join(import.meta.dirname, "../../../node_modules/@anthropic-ai/sdk/resources/beta/beta.d.ts"),
    "utf8",
  );
  const [, union = ""] = /type AnthropicBeta = ([^;]+);/.exec(types) ?? [];
  const known = new Set([...union.matchAll(/'([\w.-]+)'/g)].map(([, name]) => name!));
  expect(known.size).toBeGreaterThan(20);
  const reviewed = ZDR_ALLOWED_HEADERS["anthropic-beta"]!;
  expect(reviewed.filter((name) => !known.has(name))).toEqual([
    "advanced-tool-use-2025-11-20",
    "claude-code-20250219",
    "effort-2025-11-24",
    "fine-grained-tool-streaming-2025-05-14",
  ]);
  const keeps = /files|batches|code-execution|skills|mcp|agent|memory|profiles|dream|webhook/;
  expect(reviewed.filter((name) => keeps.test(name))).toEqual([]);
});
