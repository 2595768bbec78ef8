// An author edits a plugin beside a gateway that runs: the new code answers in every process, nothing is dropped, and what
// does not compile changes nothing.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { startGateway, type Daemon } from "../kit/daemon.ts";

const PLUGIN = `
import { defineProvider } from "tollgate/plugin";
import { said } from "./lib/said.ts";
export default defineProvider({
  api: 1, name: "mine", summary: "Says one thing",
  setup: () => ({
    endpoints: [{
      kind: "chat",
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

describe.each([1, 2])("with %i processes, an edited plugin", (workers) => {
  it("answers after the reload, and one that cannot be read changes nothing", async () => {
    await using gateway = await startGateway({
      yaml: `workers: ${workers}\nfrontends: [chat-completions]\nproviders: { mine: { use: ./mine.ts } }`,
      files: { "mine.ts": PLUGIN, "lib/said.ts": saying("one") },
    });
    expect(await says(gateway)).toEqual(["one"]);
    // The file that it imports is watched as well: gateway.yaml is not touched.
    await writeFile(join(gateway.dir, "lib/said.ts"), saying("two"));
    await gateway.line(({ msg, generation }) => msg === "reloaded" && generation === 2);
    expect(await says(gateway)).toEqual(["two"]);

    await writeFile(join(gateway.dir, "lib/said.ts"), `${saying("three")}\nexport const = 1;\n`);
    const refused = await gateway.line(({ msg }) => msg.startsWith("reload refused"));
    expect(JSON.stringify(refused["problems"])).toContain(`${join(gateway.dir, "lib/said.ts")}:3:`);
    expect(await says(gateway)).toEqual(["two"]);

    await writeFile(join(gateway.dir, "lib/said.ts"), saying("four"));
    await gateway.line(({ msg, generation }) => msg === "reloaded" && generation === 3);
    expect(await says(gateway)).toEqual(["four"]);

    // Where files are not watched, or the change was made to a package, a reload is asked for.
    expect(await gateway.ask("reload")).toMatchObject({ ok: true, unchanged: true });
  });
});
