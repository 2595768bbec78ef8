// The code that the playground shows is run: in curl, and in JavaScript with the available
// libraries.
import { execFile } from "node:child_process";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { tmpdir } from "node:os";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { codeSnippet } from "../../../plugins/observers/console/web/pages/playground/playground-code.ts";
import type { Draft } from "../../../plugins/observers/console/web/pages/playground/playground-frontend.ts";
import { FRONTENDS } from "../../../plugins/observers/console/web/pages/playground/playground-operations.ts";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";

const run = promisify(execFile);
const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const MODULES = join(import.meta.dirname, "../../../node_modules");

let at: Daemon;
let place: string;
let draft: Omit<Draft, "model" | "stream">;
beforeAll(async () => {
  at = await startDaemon({
    yaml: `
frontends: [chat-completions, messages, responses, gemini, completions, images, embeddings, rerank, moderations, speech, transcriptions]
middleware: [auth, zdr, limits, usage]
providers: { demo: { use: demo } }
`,
  });
  place = await mkdtemp(join(tmpdir(), "tollgate-code-"));
  await symlink(MODULES, join(place, "node_modules"));
  const attached = async (name: string, type: string, bytes: Buffer<ArrayBuffer>) => {
    await writeFile(join(place, name), bytes);
    const address = `data:${type};base64,${bytes.toString("base64")}`;
    return { file: new File([bytes], name, { type }), dataUrl: address };
  };
  draft = {
    system: 'It\'s "short"',
    prompt: "What's a toll?\nAnd a gate?",
    tool: false,
    image: await attached("pi xel.png", "image/png", Buffer.from(PIXEL, "base64")),
    audio: await attached("night.mp3", "audio/mpeg", Buffer.alloc(8_000, 1)),
    documents: "a toll\na cat",
    voice: "alloy",
    format: "wav",
  };
});
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  await rm(place, { recursive: true, force: true });
});

const every = Object.entries(FRONTENDS).flatMap(([name, frontend]) =>
  (frontend.fields.includes("stream") ? [true, false] : [false]).map(
    (stream) => [name, stream] as const,
  ),
);
const code = (language: string, name: string, stream: boolean) => {
  const frontend = FRONTENDS[name]!;
  const whole = { ...draft, model: frontend.defaultModel, stream };
  return codeSnippet(language, { frontend, draft: whole, zdr: "required", url: at.url });
};
const played = async (program: string, args: readonly string[]) => {
  const env = { ...process.env, TOLLGATE_KEY: at.key };
  const { stdout } = await run(program, args, { cwd: place, env, maxBuffer: 2 ** 24 });
  return stdout;
};

it.each(every)("curl calls %s, streamed: %s", async (name, stream) => {
  const out = await played("sh", ["-c", code("curl", name, stream).replace("curl", "curl -sS -f")]);
  if (name === "speech") return expect(await played("head", ["-c4", "speech.wav"])).toBe("RIFF");
  expect(out).not.toBe("");
  expect(out.includes("data: ")).toBe(stream);
});

it.each(
  every.filter(([name]) => ["openai", "anthropic"].includes(FRONTENDS[name]!.snippet.library)),
)("JavaScript calls %s, streamed: %s", async (name, stream) => {
  await writeFile(join(place, `${name}.mjs`), code("js", name, stream));
  const out = await played(process.execPath, [`${name}.mjs`]);
  if (name === "speech") return expect(await played("head", ["-c4", "speech.wav"])).toBe("RIFF");
  expect(out).not.toBe("");
});
