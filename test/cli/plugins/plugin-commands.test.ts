// Commands of plugins as options of the command line: on the files, in a running gateway, and in
// one of several processes. The results are the same.
import { expect, test } from "vitest";
import { createTestFolder, runTollgate } from "../../kit/process/command-line.ts";
import { startDaemon } from "../../kit/process/daemon.ts";

const OWN = `export default { "~tollgate": "middleware", api: 1, name: "own", summary: "Our own", sends: "nowhere",
  setup(_, ctx) {
    const ask = ctx.createPeerQuery("process", () => process.pid);
    const properties = {
      count: { type: "integer", minimum: 1, description: "How many" },
      unit: { enum: ["tokens", "requests"], description: "Of what" },
      dry_run: { type: "boolean", default: false, description: "Only look" },
      tags: { type: "array", items: { type: "integer" }, description: "Numbers" },
      more: { type: "object", description: "Anything" },
    };
    return { commands: {
      add: {
        summary: "Adds",
        input: { type: "object", additionalProperties: false, required: ["count", "unit"], properties },
        run: async (input) => input,
      },
      boom: { summary: "Fails", run: async () => { throw new Error("no such luck"); } },
      where: { summary: "Says where it runs", run: async () => ({ here: process.pid, twin: (await ask({})) ?? null }) },
    } };
  } };`;
const YAML = `middleware: [auth, usage, { use: ./own.mjs }]
providers:
  demo: { use: demo }
`;
const FILES = { "gateway.yaml": YAML, "own.mjs": OWN };
const ADD = ["plugin", "middleware.own", "add"];

test("lists the mounted plugins and their parts, without a gateway", async () => {
  await using here = await createTestFolder(FILES);
  const all = await here.tollgate(["plugin"]);
  expect([all.code, all.err]).toEqual([0, ""]);
  expect(all.out).toMatch(/^store +sqlite +head, contains$/m);
  expect(all.out).toMatch(/^middleware\.own +\.\/own\.mjs +add, boom, where$/m);
  expect(all.out).toMatch(/^providers\.demo +demo +no commands$/m);
  const one = await here.tollgate(["plugin", "store"]);
  expect(one.out).toMatch(
    /tollgate plugin store contains --hash <text>\n.+\n +--hash <text>  From/,
  );
  const help = await here.tollgate([...ADD, "--help"]);
  expect([help.code, help.err]).toEqual([0, ""]);
  expect(help.out).toMatch(/^Usage: tollgate plugin middleware\.own add --count <number> --unit/);
  expect(help.out).toMatch(/--dry-run +Only look \(default: false\)\n/);
});

test("converts options by the schema, or reports all invalid ones together", async () => {
  await using here = await createTestFolder(FILES);
  const made = await here.tollgate([
    ...ADD,
    ..."--count 3 --unit tokens --dry-run --tags 1 --tags 2 --json --more".split(" "),
    '{"a":["1"]}',
  ]);
  expect([made.code, made.err]).toEqual([0, ""]);
  expect(JSON.parse(made.out)).toEqual({
    count: 3,
    unit: "tokens",
    dry_run: true,
    tags: [1, 2],
    more: { a: ["1"] },
  });
  const piped = await here.tollgate([...ADD, "--input", "-", "--count", "4"], {
    input: '{"unit":"requests","count":9}',
  });
  expect(piped.out).toMatch(/^count +4$/m);

  const says = async (args: string[], ...texts: string[]) => {
    const { code, out, err } = await here.said(args);
    expect([code, out]).toEqual([1, ""]);
    for (const text of texts) expect(err).toContain(text);
  };
  await says(
    [...ADD, "--count", "some", "--unit", "tokns"],
    "--count: expected a whole number",
    '--unit: invalid value "tokns"',
    'did you mean "tokens"?',
    "See tollgate plugin middleware.own add --help",
  );
  await says(ADD, "missing key --count — How many", "missing key --unit — Of what");
  await says([...ADD, "--cuont", "3"], 'Unknown option "--cuont". Did you mean "--count"?');
  await says([...ADD, "--input", '{"foo":1}'], '--input: unknown key "foo"');
  await says([...ADD, "--input", "{"], "Invalid JSON in --input");
  await says(["plugin", "usage", "today"], 'Did you mean "frontends.usage"?');
  await says(["plugin", "usage"], 'Did you mean "frontends.usage"?');
  await says(
    ["plugin", "store", "contians"],
    'Did you mean "contains"? Known commands: head, contains.',
  );
  await says(["plugin", "providers.demo", "x"], "The plugin providers.demo has no commands");
  await says(["plugin", "middleware.own", "boom"], "middleware.own boom failed: no such luck");
});

test("rejects a memory store, which has no files", async () => {
  await using here = await createTestFolder({
    ...FILES,
    "gateway.yaml": `store: { use: memory }\n${YAML}`,
  });
  expect((await here.tollgate(["plugin"])).code).toBe(0);
  const { code, err } = await here.tollgate(["plugin", "middleware.usage", "today"]);
  expect([code, err]).toEqual([
    1,
    expect.stringContaining("no gateway is running. Start it first."),
  ]);
});

test.each([1, 2])(
  "runs in a running gateway of %s, and on its files after it ended",
  async (workers) => {
    await using gateway = await startDaemon({
      yaml: `workers: ${workers}\n${YAML}`,
      files: { "own.mjs": OWN },
    });
    const asked = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${gateway.key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "demo/echo", messages: [{ role: "user", content: "Hello" }] }),
    });
    expect(asked.status).toBe(200);
    const today = async () => {
      const { code, out } = await runTollgate(gateway, [
        "plugin",
        "middleware.usage",
        "today",
        "--json",
      ]);
      expect(code).toBe(0);
      return JSON.parse(out) as unknown;
    };
    const rows = await today();
    expect(rows).toEqual([expect.objectContaining({ calls: 1 })]);
    const words = await runTollgate(gateway, ["plugin", "middleware.usage", "today"]);
    expect(words.out).toMatch(/^key +calls +nano_usd +unpriced\n\S+ +1 +0 +0\n$/);

    const { hash } = (await gateway.ask("store/head")) as { hash: string };
    expect(await gateway.ask("store/contains", { hash })).toBe(true);
    await expect(gateway.ask("store/contains", { hash: 1 })).rejects.toThrow(
      "/hash: expected text",
    );
    const where = (await gateway.ask("middleware.own/where")) as {
      here: number;
      twin: number | null;
    };
    expect(where.here).toBe(gateway.pid);
    if (workers === 1) expect(where.twin).toBe(null);
    else expect([null, gateway.pid]).not.toContain(where.twin);

    await gateway.stop();
    expect(await today()).toEqual(rows);
    const held = await runTollgate(gateway, ["plugin", "store", "contains", "--hash", hash]);
    expect([held.code, held.out]).toEqual([0, "yes\n"]);
  },
);
