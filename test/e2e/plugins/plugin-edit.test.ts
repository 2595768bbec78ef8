// An author edits a plugin while a gateway runs: every process uses the new code, no request is
// dropped, and code that does not compile changes nothing.
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { until } from "../../kit/wait.ts";
import { root } from "../../kit/process/program.ts";
import { NIGHTLY } from "../../kit/law-effort.ts";

/** How often the author saves a type error and then mends it. */
const TURNS = NIGHTLY ? 3 : 1;

const PLUGIN = `
import { defineProvider } from "tollgate/plugin";
import { said } from "./lib/said.ts";
export default defineProvider({
  api: 1, name: "mine", summary: "Says one thing",
  setup: () => ({
    endpoints: [{
      operation: "chat",
      async *run() {
        yield { type: "start", id: "m1" };
        yield { type: "open", index: 0, block: { type: "text" } };
        yield { type: "delta", index: 0, text: said };
        yield { type: "close", index: 0 };
        yield { type: "usage", usage: { input: 1, output: 1 } };
        yield { type: "finish", reason: "stop" };
      },
    }],
  }),
});
`;
const saying = (text: string) => `export const said: string = ${JSON.stringify(text)};\n`;

async function says(gateway: Daemon): Promise<string[]> {
  const ask = async () => {
    const res = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${gateway.key}`,
        connection: "close",
      },
      body: JSON.stringify({ model: "mine/m", messages: [{ role: "user", content: "?" }] }),
    });
    const body = (await res.json()) as { choices?: { message: { content: string } }[] };
    return body.choices?.[0]?.message.content ?? JSON.stringify(body);
  };
  return [...new Set(await Promise.all(Array.from({ length: 12 }, ask)))];
}

describe.each(NIGHTLY ? [1, 2] : [2])("with %i processes, an edited plugin", (workers) => {
  it("responds with the new code after the reload, and an invalid plugin changes nothing", async () => {
    await using gateway = await startDaemon({
      yaml: `workers: ${workers}\nfrontends: [chat-completions]\nproviders: { mine: { use: ./mine.ts } }`,
      files: { "mine.ts": PLUGIN, "lib/said.ts": saying("one") },
    });
    expect(await says(gateway)).toEqual(["one"]);
    // Imported files are watched as well: gateway.yaml is not touched.
    await writeFile(join(gateway.dir, "lib/said.ts"), saying("two"));
    await gateway.line(({ msg, generation }) => msg === "reloaded" && generation === 2);
    expect(await says(gateway)).toEqual(["two"]);

    await writeFile(join(gateway.dir, "lib/said.ts"), `${saying("three")}\nexport const = 1;\n`);
    const refused = await gateway.line(({ msg }) => msg.startsWith("reload rejected"));
    expect(JSON.stringify(refused["problems"])).toContain(`${join(gateway.dir, "lib/said.ts")}:3:`);
    expect(await says(gateway)).toEqual(["two"]);

    await writeFile(join(gateway.dir, "lib/said.ts"), saying("four"));
    await gateway.line(({ msg, generation }) => msg === "reloaded" && generation === 3);
    expect(await says(gateway)).toEqual(["four"]);

    // If files are not watched, or a package was changed, a reload is requested.
    expect(await gateway.ask("reload")).toMatchObject({ ok: true, isUnchanged: true });
  });
});

/** Other files of the author next to the plugin. */
async function compiler(dir: string): Promise<void> {
  await mkdir(join(dir, "node_modules"));
  await symlink(join(root, "node_modules/typescript"), join(dir, "node_modules/typescript"));
}

/** An immediate edit, however late the files are first checked. */
async function noticed(gateway: Daemon, file: string, text: string): Promise<void> {
  await writeFile(file, `${text}// edited\n`);
  await gateway.line(({ msg }) => msg === "reloaded");
}

/** Needs no types except its own. */
const PLAIN = PLUGIN.replace(/^import \{ defineProvider.*$/m, "")
  .replace("defineProvider({", '{ "~tollgate": "provider",')
  .replace("});\n", "};\n");

describe("tollgate serve --dev", () => {
  it("swaps on save under load, and rejects code with type errors, with file and line", async () => {
    await using gateway = await startDaemon({
      yaml: "workers: 2\nfrontends: [chat-completions]\nproviders: { mine: { use: ./mine.ts } }",
      files: { "mine.ts": PLAIN, "lib/said.ts": saying("0") },
      args: ["--dev"],
    });
    const said = join(gateway.dir, "lib/said.ts");
    const wrong = async (text: string, words: string) => {
      await writeFile(said, text);
      const { problems } = await gateway.line(
        (line) => line.msg.startsWith("reload rejected") && JSON.stringify(line).includes(words),
      );
      return JSON.stringify(problems);
    };
    await compiler(gateway.dir);
    // One process, whatever the file configures: an author reads one log, and may debug it.
    expect(await gateway.ask("stats")).toMatchObject({ processes: { expected: 1 } });
    await noticed(gateway, said, saying("0"));
    let over = false;
    const heard = new Set<string>();
    const others = (async () => {
      while (!over) for (const text of await says(gateway)) heard.add(text);
    })();
    for (let turn = 1; turn <= TURNS; turn++) {
      const types = await wrong("export const said: string =\n  7;\n", "not assignable");
      expect(types).toContain(`type errors in ./mine.ts: ${said}:1:14  Type 'number'`);
      await writeFile(said, saying(`${turn}`));
      await until(async () => (await says(gateway)).join() === `${turn}`);
    }
    over = true;
    await others;
    expect([...heard].filter((text) => !(Number(text) <= TURNS))).toEqual([]);
    expect(await wrong(`throw new Error("at once");\n${saying("4")}`, "at once")).toContain(
      `${said}:1:`,
    );
  });

  it("reports the location of an error in setup and in a hook", async () => {
    const guard = (setup: string, hook: string) => `
export default { "~tollgate": "middleware", api: 1, name: "guard", summary: "Fails", sends: "nowhere",
  setup() {
    ${setup}
    return { inspect() {
      ${hook}
    } };
  } };`;
    await using gateway = await startDaemon({
      yaml: "frontends: [chat-completions]\nmiddleware: [auth, { use: ./guard.ts }]\nproviders: { demo: { use: demo } }",
      files: { "guard.ts": guard("", 'throw new TypeError("its own");') },
      args: ["--dev"],
    });
    const file = join(gateway.dir, "guard.ts");
    await noticed(gateway, file, guard("", 'throw new TypeError("its own");'));
    const res = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${gateway.key}` },
      body: JSON.stringify({ model: "demo/echo", messages: [{ role: "user", content: "?" }] }),
    });
    expect(res.status).toBe(500);
    const line = await gateway.line(({ msg }) => msg === "hook failed");
    expect(JSON.stringify(line)).toContain(`${file}:6:`);
    await writeFile(file, guard('throw new RangeError("no such luck");', ""));
    const refused = await gateway.line(({ msg }) => msg.startsWith("reload rejected"));
    expect(JSON.stringify(refused["problems"])).toContain(`RangeError at ${file}:4:`);
  });
});
