// Features of the core without plugins, and its own description.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { defineStore } from "tollgate/plugin";
import { createGateway } from "../../../src/server/gateway.ts";
import type { RequestExplanation } from "../../../src/runtime/gateway-api.ts";
import { createLog } from "../../../src/lib/log/log.ts";
import { SecretMask } from "../../../src/lib/log/secret-mask.ts";
import { startInProcess } from "../../kit/in-process.ts";
import { programArgs } from "../../kit/process/program.ts";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "../../..");

describe("with zero plugins", () => {
  it("the core starts, reports health, and returns errors", async () => {
    const dir = await mkdtemp(join(tmpdir(), "bare-"));
    await writeFile(
      join(dir, "gateway.yaml"),
      "frontends: []\nmiddleware: []\nlisten: { port: 0 }\nshutdown: { announce: 0s }\n",
    );
    const mask = new SecretMask();
    // An empty stub replaces the ledger, so no built-in plugin is loaded.
    const empty = defineStore({
      api: 1,
      name: "empty",
      summary: "Holds nothing",
      setup: () => ({
        open: async () => ({ epoch: 1, recovered: 0 }),
        apply: async (batch) => batch.map(() => ({ ok: true })),
        findKey: async () => undefined,
        listKeys: async () => ({ items: [] }),
        listEntries: async () => ({ items: [] }),
        sumEntries: async () => [],
      }),
    });
    const gateway = await createGateway({
      configFile: join(dir, "gateway.yaml"),
      env: {},
      log: createLog({ level: "error", pretty: false, mask }),
      mask,
      version: "test",
      loadPlugin: async (use, kind) =>
        kind === "store"
          ? { definition: empty, from: "the test" }
          : { problem: { id: "plugin/not-found", message: `no ${use}` } },
    });
    if ("problems" in gateway) throw new Error(JSON.stringify(gateway.problems));
    try {
      expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
      expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200);
      expect((await fetch(`${gateway.url}/`, { method: "HEAD" })).status).toBe(200);
      const res = await fetch(`${gateway.url}/v1/chat/completions`, { method: "POST", body: "{}" });
      expect(res.status).toBe(404);
      expect(res.headers.get("x-request-id")).toBeTruthy();
      expect(await res.json()).toMatchObject({
        error: {
          code: "unknown_path",
          message: expect.stringContaining("No frontend is configured"),
        },
      });
    } finally {
      await gateway.stop();
      await rm(dir, { recursive: true, force: true });
    }
  });
});

describe("explain", () => {
  const yaml = (middleware: string) => `
middleware: [auth, zdr, limits, usage${middleware}]
providers:
  up: { use: openai-compatible, with: { base_url: "http://127.0.0.1:9/v1" } }
`;
  const HOUSE = `
import { defineMiddleware } from "tollgate/plugin";
export default defineMiddleware({ api: 1, name: "house-rules", summary: "Says something first", sends: "nowhere",
  setup: () => ({ rewrite: (request) => request }) });
`;

  it("shows passthrough mode of the default chain, with hooks in order", async () => {
    await using gateway = await startInProcess({ yaml: yaml("") });
    const told = (await gateway.ask("explain", { model: "up/m" })) as unknown as RequestExplanation;
    expect(told.frontend).toBe("chat-completions");
    expect(told.candidates).toEqual([
      expect.objectContaining({ id: "up/m", protocol: "chat-completions", mode: "passthrough" }),
    ]);
    expect(told.hooks["admit"]).toEqual(["middleware.auth", "middleware.zdr", "middleware.limits"]);
  });

  it("names the middleware that disables it, in the command's output", async () => {
    await using gateway = await startInProcess({
      yaml: yaml(", { use: ./house.ts }"),
      files: { "house.ts": HOUSE },
    });
    const told = (await gateway.ask("explain", { model: "up/m" })) as unknown as RequestExplanation;
    expect(told.candidates[0]).toMatchObject({
      mode: "translated",
      translationReason: "middleware.house-rules (rewrite)",
    });
    const { stdout } = await run(
      join(ROOT, "node_modules/.bin/node"),
      [...programArgs(), "explain", "up/m", "-c", gateway.file],
      { cwd: gateway.dir },
    );
    expect(stdout).toContain("translated");
    expect(stdout).toContain("middleware.house-rules (rewrite)");
    expect(stdout).not.toContain("\u001b[");
  });
});

describe("the editor schema", () => {
  it("equals the output of `tollgate schema`", async () => {
    const { stdout } = await run(
      join(ROOT, "node_modules/.bin/node"),
      [...programArgs(), "schema", "--check"],
      { cwd: ROOT },
    ).catch((error: { stdout: string }) => error);
    expect(stdout).toContain("up to date");
  });
});
