// Claude Code and Codex, if installed, with a Gemini model behind the gateway: a turn of text, two
// parallel tools after reasoning, and a resumed conversation. The fake API validates every request.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { say, think, type UpstreamRequest, type ModelScript } from "tollgate/testing";
import { claudeCode } from "../../clients/claude-code.ts";
import type { Client } from "../../clients/client.ts";
import { codex } from "../../clients/codex.ts";
import { installed, isInstalled } from "../../clients/install.ts";
import { modelOn, type Command, type Stage } from "../../clients/stage.ts";
import {
  startGatewayWithGemini,
  MODEL,
  SIGNATURE,
  type GatewayWithGemini,
} from "./gateway-with-gemini.ts";
import { NIGHTLY } from "../../kit/law-effort.ts";

/** Names that the clients do not know, and names of models that they know. */
const NAMES = [...claudeCode.models, ...codex.models];
const PROXIES = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].flatMap((n) => [n, n.toLowerCase()]);

let at: GatewayWithGemini;
let home: string;
let folders = 0;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "tollgate-gemini-"));
  at = await startGatewayWithGemini(
    () =>
      `models:\n${[...new Set(NAMES)].map((name) => `  "${modelOn("messages", name)}": ["${MODEL}"]`).join("\n")}\n`,
  );
});
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  await rm(home, { recursive: true, force: true });
});

async function run({ args, env, cwd }: Command) {
  const alone = Object.fromEntries(PROXIES.map((name) => [name, "http://127.0.0.1:9"]));
  const child = spawn(process.execPath, args, {
    cwd,
    env: {
      PATH: process.env["PATH"] ?? "",
      LANG: "C.UTF-8",
      ...alone,
      NO_PROXY: "127.0.0.1",
      no_proxy: "127.0.0.1",
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 50_000,
    killSignal: "SIGKILL",
  });
  let out = "";
  let err = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, out: out.trim(), err };
}

const partsOf = (asked: UpstreamRequest): any[] =>
  asked.json().contents.flatMap(({ parts }: any) => parts);
const heardBy = (asked: UpstreamRequest): string[] =>
  partsOf(asked).flatMap(({ functionResponse: f }) => (f ? [String(f.response.output)] : []));
const declaredBy = (asked: UpstreamRequest): string[] =>
  (asked.json().tools ?? []).flatMap((tool: any) =>
    (tool.functionDeclarations ?? []).map((f: any) => f.name),
  );

for (const client of [claudeCode, codex] as readonly Client[]) {
  describe.skipIf(!isInstalled(client.package))(
    `${client.package.name} ${client.package.version}`,
    () => {
      const folder = async () => {
        const path = join(home, String(++folders));
        await mkdir(path);
        return path;
      };
      const models = NIGHTLY ? client.models : client.models.slice(0, 1);
      const ask = async (words: string, cwd: string, model: string, again = false) => {
        const stage = { url: at.gateway.url, key: at.gateway.key, folder } as unknown as Stage;
        const script = await installed(client.package);
        return run(
          await client.asks({
            client,
            script,
            at: stage,
            spoken: "messages",
            cwd,
            model,
            words,
            again,
          }),
        );
      };

      it.each(models)("holds a conversation of several turns, as %s", async (model) => {
        const cwd = await folder();
        at.speak(think("Let me think.", SIGNATURE).say("Hi, Ada 🌍."));
        expect(await ask("I am Ada.", cwd, model)).toMatchObject({ out: "Hi, Ada 🌍.", code: 0 });
        at.speak((asked) =>
          say(String(asked.body).includes("I am Ada.") ? "You are Ada." : "I forgot."),
        );
        expect(await ask("Who am I?", cwd, model, true)).toMatchObject({
          out: "You are Ada.",
          code: 0,
        });
        expect(at.asked()).toHaveLength(1);
      });

      const often = models.flatMap((model) =>
        (NIGHTLY ? [1, 2] : [2]).map((files) => ({ model, files })),
      );
      it.each(often)("reads files with reasoning before them: $files, as $model", async (of) => {
        const { model } = of;
        const cwd = await folder();
        const notes = ["The bridge is «green» 🌉.", 'No, it is "red".'].slice(0, of.files);
        const files = notes.map((_, i) => join(cwd, `${i}.txt`));
        await Promise.all(files.map((file, i) => writeFile(file, notes[i]!)));
        at.speak((asked) => {
          const heard = heardBy(asked);
          if (heard.length > 0)
            return say(
              `I read: ${notes.filter((note) => heard.some((text) => text.includes(note))).join(" ")}`,
            );
          const calls = files.map((file) => client.reads(file));
          expect(declaredBy(asked)).toContain(calls[0]!.tool);
          return calls.reduce<ModelScript>(
            (said, { tool, args }) => said.call(tool, args),
            think("I should look.", SIGNATURE),
          );
        });
        const { out, code, err } = await ask("What do the notes say?", cwd, model);
        expect({ out, code }, err).toEqual({ out: `I read: ${notes.join(" ")}`, code: 0 });
        const calls = partsOf(at.asked()[1]!).filter((part) => part.functionCall);
        expect(calls.map((part) => part.thoughtSignature)).toEqual(
          notes.map((_, i) => (i === 0 ? SIGNATURE : undefined)),
        );
      });
    },
  );
}
