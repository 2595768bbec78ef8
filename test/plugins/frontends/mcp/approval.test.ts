// Approval of tools by hash, and conditions for arguments.
import fc from "fast-check";
import { expect, it } from "vitest";
import type { JsonObject, RequestHead } from "tollgate/plugin";
import { createTestContext } from "tollgate/testing";
import { CallConditions } from "../../../../plugins/frontends/mcp/conditions/call-conditions.ts";
import { hashTool } from "../../../../plugins/frontends/mcp/list-entries.ts";
import { MountedServer } from "../../../../plugins/frontends/mcp/mounted-server.ts";
import type { ToolServer } from "../../../../plugins/frontends/mcp/tool-server.ts";
import { sendModern } from "./client.ts";
import { all, namesOf, some, start, textOf } from "./gateway.ts";

const tool = (description: string): JsonObject => ({
  name: "echo",
  description,
  inputSchema: { type: "object" },
});

it("a tool is offered as long as its definition is the approved one, and each change is flagged once", async () => {
  const description = fc.constantFrom("a", "b", "c");
  await fc.assert(
    fc.asyncProperty(
      fc.array(description, { minLength: 1, maxLength: 8 }),
      fc.option(description, { nil: undefined }),
      fc.constantFrom("warn" as const, "block" as const),
      async (steps, pinned, reaction) => {
        await using test = createTestContext({ id: "frontends.mcp" });
        let now = "";
        const server: ToolServer = {
          name: "one",
          describe: async () => ({ capabilities: {} }),
          list: async () => ({ items: [tool(now)] }),
          request: async () => ({}),
        };
        const mounted = new MountedServer({
          server,
          listTimeoutMs: 60_000,
          rules: {
            tools: {
              on_change: reaction,
              ...(pinned !== undefined && { pin: { echo: hashTool(tool(pinned)) } }),
            },
            zero_retention: false,
          },
          credentials: { resolve: () => ({ headers: {}, owner: "shared" }) },
          listTtlMs: 60_000,
          ctx: test.ctx,
        });
        const x = { identity: { id: "key" } } as unknown as RequestHead;
        const approved = pinned ?? steps[0]!;
        for (now of steps) {
          mounted.invalidate("tools");
          const { entries, allNames } = await mounted.list("tools", x, { capabilities: {} });
          expect(allNames).toEqual(["echo"]);
          const isOffered = now === approved || (pinned === undefined && reaction === "warn");
          expect([...entries.keys()]).toEqual(isOffered ? ["echo"] : []);
        }
        const changed = [...new Set(steps)].filter((one) => one !== approved);
        const action = pinned === undefined && reaction === "warn" ? "offered" : "blocked";
        const expected = changed.map((one) => ({
          server: "one",
          tool: "echo",
          hash: hashTool(tool(one)),
          action,
        }));
        expect(test.reportedEvents.map((event) => (event as { data?: unknown }).data)).toEqual(
          expected,
        );
        expect(
          test.logs.filter(({ level }) => level === "warn").map((line) => line.fields),
        ).toEqual(expected);
      },
    ),
    { numRuns: 100 },
  );
});

it("a pinned tool whose definition differs is neither listed nor called", async () => {
  const { url, servers } = await start(
    { one: { revision: "2026-07-28", tools: [tool("changed"), "other"] } },
    { server: { one: { tools: { pin: { echo: hashTool(tool("approved")) } } } } },
  );
  const client = { url: `${url}/one`, key: all };
  expect(namesOf(await sendModern(client, "tools/list"))).toEqual(["other"]);
  const { error } = await sendModern(client, "tools/call", { name: "echo" });
  expect(error).toEqual({ code: -32_602, message: "Unknown tool: echo" });
  expect(servers["one"]!.received.map(({ method }) => method)).not.toContain("tools/call");
});

it("conditions are JSON Schemas that apply to tools, keys, and accounts", () => {
  const conditions = new CallConditions([
    {
      tools: ["create_*"],
      arguments: {
        type: "object",
        properties: {
          owner: { enum: ["acme", "own"] },
          labels: { type: "array", maxItems: 2, items: { type: "string", pattern: "^[a-z]+$" } },
        },
        required: ["owner"],
        not: { required: ["admin"] },
      },
    },
    { tools: ["*"], keys: ["guest"], arguments: { maxProperties: 1 } },
    { tools: ["*"], accounts: ["team"], arguments: { properties: { amount: { maximum: 10 } } } },
  ]);
  const key = { id: "key" };
  const team = { id: "key", account: "sub", accountPath: ["acme", "team", "sub"] };
  const cases: [tool: string, values: JsonObject, who: object, violation: string | undefined][] = [
    ["create_issue", { owner: "acme", labels: ["a", "b"] }, key, undefined],
    ["create_issue", {}, key, "The arguments must have required property 'owner'"],
    ["create_issue", { owner: "x" }, key, "/owner must be equal to one of the allowed values"],
    [
      "create_issue",
      { owner: "own", labels: ["A"] },
      key,
      '/labels/0 must match pattern "^[a-z]+$"',
    ],
    ["create_issue", { owner: "own", admin: true }, key, "The arguments must NOT be valid"],
    ["read", { owner: "x" }, key, undefined],
    ["read", { a: 1, b: 2 }, { id: "guest" }, "The arguments must NOT have more than 1 properties"],
    ["read", { amount: 11 }, key, undefined],
    ["read", { amount: 11 }, team, "/amount must be <= 10"],
    ["read", { amount: 11 }, { id: "key", account: "other" }, undefined],
  ];
  for (const [name, values, who, violation] of cases)
    expect([name, values, conditions.findViolation(name, values, who as { id: string })]).toEqual([
      name,
      values,
      violation,
    ]);
});

it("arguments that a condition rejects are not sent, and have no row", async () => {
  const { url, servers, gateway } = await start(
    { one: { revision: "2026-07-28" } },
    {
      server: {
        one: { conditions: [{ tools: ["echo"], arguments: { required: ["owner"] } }] },
      },
    },
  );
  const client = { url: `${url}/one`, key: some };
  const denied = await sendModern(client, "tools/call", { name: "echo", arguments: {} });
  expect(denied.error).toEqual({
    code: -32_602,
    message:
      "These arguments are not allowed for this key: The arguments must have required property 'owner'.",
    data: { code: "arguments_not_allowed" },
  });
  expect(servers["one"]!.received.map(({ method }) => method)).not.toContain("tools/call");
  const rows = async () => ((await gateway.ask("ledger.entries", {})) as { items: object[] }).items;
  expect(await rows()).toEqual([]);
  const params = { name: "echo", arguments: { owner: "acme" } };
  expect(textOf(await sendModern(client, "tools/call", params))).toBe('{"owner":"acme"}');
});
