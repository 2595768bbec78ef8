// Tools of keys and accounts, which operators set with commands: a tool must be allowed by the key
// and by each account above it. On PostgreSQL, test/on-postgres.ts runs the same.
import fc from "fast-check";
import { expect, it } from "vitest";
import { main } from "../../../src/cli/main.ts";
import { startInProcess } from "../../kit/in-process.ts";
import { sendModern } from "../../plugins/frontends/mcp/client.ts";
import { startFakeServer } from "../../plugins/frontends/mcp/fake-server.ts";

const TOOLS = ["get_issue", "get_file", "drop_issue", "drop_file"];
const PATTERNS = ["one/*", "one/get_*", "one/*_file", "one/drop_issue", "two/*", "*"];

const matches = (pattern: string, name: string) =>
  new RegExp(`^${pattern.replaceAll("*", ".*")}$`).test(name);

it("a key may call the tools that it and each of its accounts allow", async () => {
  await using server = await startFakeServer({ revision: "2026-07-28", tools: TOOLS });
  const options = { servers: { one: { url: server.url } } };
  await using gateway = await startInProcess({
    yaml: `
frontends: [{ use: mcp, with: ${JSON.stringify(options)} }]
providers: { demo: { use: demo } }
middleware: [auth]
store: { use: sqlite, with: { durability: process, ballast_mb: 0 } }
accounts: { house: { tools: ["one/*", "two/*"] } }
`,
  });
  const lists = fc.option(
    fc.uniqueArray(fc.constantFrom(...PATTERNS), { minLength: 1, maxLength: 3 }),
    {
      nil: undefined,
    },
  );
  const worlds = fc.sample(
    fc.record({ outer: lists, inner: lists, key: lists, isNested: fc.boolean() }),
    {
      numRuns: 12,
      seed: 45,
    },
  );
  for (const [n, { outer, inner, key, isNested }] of worlds.entries()) {
    const tools = (of: readonly string[] | undefined) => (of ? { tools: [...of] } : {});
    await gateway.ask("accounts.create", { id: `outer-${n}`, parent: "house", ...tools(outer) });
    await gateway.ask("accounts.create", {
      id: `inner-${n}`,
      parent: `outer-${n}`,
      ...tools(inner),
    });
    const account = isNested ? `inner-${n}` : `outer-${n}`;
    const { secret } = (await gateway.ask("keys.create", { account, ...tools(key) })) as {
      secret: string;
    };
    const above = [["one/*", "two/*"], outer, isNested ? inner : undefined, key];
    const allowed = TOOLS.filter((name) =>
      above.every((list) => !list || list.some((one) => matches(one, `one/${name}`))),
    ).toSorted();
    const client = { url: `${gateway.url}/mcp`, key: secret };
    const { result } = await sendModern(client, "tools/list");
    const listed = (result!["tools"] as { name: string }[]).map(({ name }) => name);
    expect([n, listed]).toEqual([n, allowed.map((name) => `one__${name}`)]);
    for (const name of TOOLS) {
      const called = await sendModern(client, "tools/call", { name: `one__${name}` });
      expect([n, name, called.error === undefined]).toEqual([n, name, allowed.includes(name)]);
    }
  }
});

it("`keys create --tools` restricts a key, and a change applies at once", async () => {
  await using server = await startFakeServer({ revision: "2026-07-28", tools: TOOLS });
  const options = { servers: { one: { url: server.url } } };
  await using gateway = await startInProcess({
    yaml: `
frontends: [{ use: mcp, with: ${JSON.stringify(options)} }]
providers: { demo: { use: demo } }
middleware: [auth]
store: { use: sqlite, with: { durability: process, ballast_mb: 0 } }
`,
  });
  const lines: string[] = [];
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = ((text: string) => (lines.push(String(text)), true)) as never;
  try {
    const tools = ["--tools", "one/get_*", "--tools", "one/drop_file"];
    await main(
      ["keys", "create", "--name", "agent", ...tools, "-c", gateway.file, "--json"],
      false,
    );
  } finally {
    process.stdout.write = write;
  }
  const { secret, key } = JSON.parse(lines.join("")) as {
    secret: string;
    key: { id: string; tools: string[] };
  };
  expect(key.tools).toEqual(["one/get_*", "one/drop_file"]);
  const names = async () => {
    const { result } = await sendModern(
      { url: `${gateway.url}/mcp/one`, key: secret },
      "tools/list",
    );
    return (result!["tools"] as { name: string }[]).map(({ name }) => name);
  };
  expect(await names()).toEqual(["drop_file", "get_file", "get_issue"]);
  await gateway.ask("keys.update", { id: key.id, tools: ["one/get_file"] });
  expect(await names()).toEqual(["get_file"]);
  await gateway.ask("keys.update", { id: key.id, tools: null });
  expect(await names()).toEqual(TOOLS.toSorted());
});
