// Runs the content of the pages: their requests are sent, their commands run, and their providers
// respond. `test/docs/pages.test.ts` checks the rest.
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { named, of, ROOT } from "../../docs/pages.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { COMPILE_CACHE_ENV, type ServingProgram, startServe } from "../../kit/process/program.ts";
import { page, stepsOf } from "../../rig/package/tutorial/page.ts";
import { shell } from "../../rig/package/tutorial/shell.ts";

const run = promisify(execFile);
// The program that npx finds in a checkout, with any Node on the machine.
const bin = join(ROOT, "src/cli/launch.js");

/** Code that opens a WebSocket. `test/clients/realtime` runs the same calls of these SDKs. */
const SOCKETS = /realtime|live\.connect|new WebSocket/;

describe("every request", () => {
  let gateway: InProcessGateway;
  beforeAll(async () => {
    gateway = await startInProcess({ yaml: await readFile(join(ROOT, "gateway.yaml"), "utf8") });
  });
  afterAll(() => gateway[Symbol.asyncDispose]());
  const here = (text: string) => text.replaceAll("http://127.0.0.1:8787", gateway.url);

  it.each(
    of("sh")
      .filter((b) => /^(curl|export KEY=)/.test(b.text))
      .map((b) => [named(b), b] as const),
  )("%s responds", async (_name, block) => {
    const text = here(block.text).replaceAll("npx tollgate", bin);
    const { stdout } = await run("bash", ["-c", text], {
      cwd: gateway.dir,
      env: { ...process.env, ...COMPILE_CACHE_ENV, KEY: gateway.key },
    });
    const answer = JSON.parse(stdout);
    expect(answer).not.toHaveProperty("error");
    const [, path = ""] =
      /127\.0\.0\.1:8787\/\S+?\/(audio|embeddings|rerank|moderations|images|(?<!chat\/)completions)\b/.exec(
        block.text,
      ) ?? [];
    if (path === "") return expect(stdout).toContain("Hello, gate.");
    if (path === "audio") return expect(answer.text).toBe("A harbour at dusk.");
    if (path === "embeddings") return expect(answer.data[0].embedding.length).toBeGreaterThan(100);
    if (path === "completions") return expect(answer.choices[0].text).toMatch(/\w/);
    if (path === "moderations") return expect(answer.results[0]).toHaveProperty("flagged");
    if (path === "rerank") return expect(answer.results[0].index).toBe(1);
    const [{ url, b64_json: bytes }] = answer.data;
    if (bytes) return expect(Buffer.from(bytes, "base64").toString("latin1", 1, 4)).toBe("PNG");
    const picture = await fetch(url);
    return expect(picture.headers.get("content-type")).toBe("image/png");
  });

  it.each(
    of("js")
      .filter((b) => !SOCKETS.test(b.text))
      .map((b) => [named(b), b] as const),
  )("%s responds", async (_name, block) => {
    // Where packages can resolve their dependencies, and no tool that reads the tree sees it.
    const folder = join(ROOT, "node_modules/.cache/tests");
    const file = join(folder, `readme-${process.pid}.mjs`);
    await mkdir(folder, { recursive: true });
    await writeFile(file, here(block.text));
    try {
      const { stdout } = await run(join(ROOT, "node_modules/.bin/node"), [file], {
        env: { ...process.env, ...COMPILE_CACHE_ENV, KEY: gateway.key },
      });
      expect(stdout).toContain("Hello, gate.");
    } finally {
      await rm(file);
    }
  });
});

const OURS = /^npx tollgate(?= )/;

/**
 * Commands that need an unpublished package, or an author's provider: the rigs `template` and
 * `author` run them.
 */
const AUTHORS = ["npx tollgate record acme/", "npx tollgate plugin add tollgate-provider-acme"];

/** Commands that need the billing API of a provider, or an open WebSocket. */
const REMOTE = ["npx tollgate reconcile", "npx tollgate sockets"];

/** Keys and accounts used in docs/guides/keys-and-budgets.md. */
const ACCOUNTS = `accounts:
  acme: {}
  research: { parent: acme }
views:
  europe: { currency: EUR, rate: "0.92", margin: "12.5", accounts: [acme] }
`;

/** Its receiver does not exist, which its test command reports. */
const ALERTS = `observers:
  - console
  - { use: alerts, with: { receivers: { chat: { url: "http://127.0.0.1:9/", format: slack } } } }
`;

describe("every tollgate command", () => {
  let gateway: InProcessGateway;
  beforeAll(async () => {
    const yaml = await readFile(join(ROOT, "gateway.yaml"), "utf8");
    gateway = await startInProcess({
      yaml: yaml.replace("port: 9787", "port: 0").replace(/^observers: .*$/m, ALERTS) + ACCOUNTS,
    });
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  it.each(
    of("sh")
      .filter(
        ({ text }) =>
          OURS.test(text) && ![...AUTHORS, ...REMOTE].some((line) => text.startsWith(line)),
      )
      .map((b) => [named(b), b] as const),
  )("%s runs, line by line, with a running gateway", async (_name, block) => {
    const text = block.text
      .replaceAll(new RegExp(OURS, "gm"), bin)
      .replaceAll("http://127.0.0.1:8787", gateway.url);
    const { stdout } = await run("bash", ["-ec", text], {
      cwd: gateway.dir,
      env: { ...process.env, ...COMPILE_CACHE_ENV, KEY: gateway.key },
    });
    expect(stdout).not.toContain('"error"');
  });
});

describe("the first plugin", () => {
  it("is created, blocks a request, and is changed while the gateway runs", async () => {
    const dir = await mkdtemp(join(tmpdir(), "first-plugin-"));
    const programs = join(dir, "bin");
    await mkdir(programs);
    const program = (name: string, text: string) =>
      writeFile(join(programs, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    await program("npx", `shift\nexec "${bin}" "$@"`);
    await program("npm", `mkdir node_modules && ln -s "${ROOT}" node_modules/tollgate`);
    const env = { ...process.env, ...COMPILE_CACHE_ENV };
    using terminal = shell(dir, { ...env, PATH: `${programs}:${process.env["PATH"]}` });
    let gateway: ServingProgram | undefined;
    const outputs = new Map<string, string>();
    try {
      // The rig `template` runs the tests and checks of each new package.
      for (const { name, text, stays } of stepsOf(page("first-plugin")).slice(0, 4)) {
        if (stays) {
          gateway = await startServe({ cwd: join(dir, "tollgate-middleware-guard"), args: [] });
          continue;
        }
        const url = gateway?.url ?? "";
        const typed = await terminal.type(text.replaceAll("http://127.0.0.1:8787", url).trimEnd());
        expect([name, typed.failed]).toEqual([name, []]);
        outputs.set(name, typed.output);
      }
    } finally {
      await gateway?.stop();
      await rm(dir, { recursive: true, force: true });
    }
    const blocked = outputs.get("Send a request that is blocked");
    expect(blocked).toContain('"code":"word_not_allowed"');
    expect(blocked).toContain('"content":"Tell me about roses."');
    expect(outputs.get("Change the plugin while the gateway runs")).toContain(
      '"code":"blocked_word"',
    );
  });
});

/** Returns the packages of ours that an author adds to the dependencies. */
const dependenciesOf = (text: string) =>
  new Set([...text.matchAll(/from "(tollgate-[\w-]+)/g)].map(([, name]) => name!));

describe("every provider", () => {
  it.each(
    of("ts")
      .filter((b) => b.text.includes("defineProvider"))
      .map((b) => [named(b), b] as const),
  )("%s loads from a file and responds", async (_name, block) => {
    const server = createServer((_req, res) => {
      res.setHeader("content-type", "application/json");
      res.end(
        JSON.stringify({
          id: "c",
          object: "chat.completion",
          created: 1,
          model: "m",
          choices: [
            {
              index: 0,
              message: { role: "assistant", content: "from acme" },
              finish_reason: "stop",
            },
          ],
          usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
        }),
      );
    });
    await new Promise<void>((r) => server.listen(0, "127.0.0.1", r));
    const dir = await mkdtemp(join(tmpdir(), "author-"));
    await mkdir(join(dir, "node_modules"));
    for (const name of dependenciesOf(block.text))
      await symlink(join(ROOT, "node_modules", name), join(dir, "node_modules", name));
    const fields = ["client_id", "client_secret", "access_key_id", "secret_access_key"];
    const declared = fields.filter((field) => block.text.includes(field));
    const credential = (declared.length > 0 ? declared : ["api_key"])
      .map((field) => `${field}: "\${env:ACME}"`)
      .join(", ");
    try {
      await using gateway = await startInProcess({
        dir,
        files: { "my-provider.ts": block.text },
        yaml: `frontends: [chat-completions]\nproviders:\n  acme: { use: ./my-provider.ts, with: { ${credential}, base_url: "http://127.0.0.1:${(server.address() as AddressInfo).port}" } }\n`,
        env: { ACME: "sk-acme-00000" },
      });
      const res = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${gateway.key}` },
        body: JSON.stringify({ model: "acme/m", messages: [{ role: "user", content: "x" }] }),
      });
      expect(await res.text()).toContain("from acme");
    } finally {
      server.close();
      await rm(dir, { recursive: true, force: true });
    }
  });
});
