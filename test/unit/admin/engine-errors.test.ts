// An engine's message about a programming error is only in the log's `err`: over the control
// socket, between processes, in problems of a reload, and in a status, only its kind, file, and
// line appear.
import { EventEmitter } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Definition } from "tollgate/plugin";
import { startTestGateway } from "tollgate/testing";
import { callControl } from "../../../src/admin/socket/control-client.ts";
import { createTestDispatcher } from "../../kit/test-dispatcher.ts";
import { serveControl } from "../../../src/admin/socket/control-socket.ts";
import { createIpcLink, type IpcChannel } from "../../../src/runtime/workers/ipc-link.ts";
import { getFault, publicErrorText } from "../../../src/model/error.ts";

const ENGINE = "Cannot read properties of undefined (reading 'map')";
const KINDS = [TypeError, RangeError, SyntaxError, ReferenceError, URIError, EvalError];

describe.each(KINDS.map((kind) => [kind.name, kind] as const))("a %s", (name, Kind) => {
  const broken = () => {
    throw new Kind(ENGINE);
  };
  const told = (text: string) => {
    expect(text).not.toContain(ENGINE);
    expect(text).toContain(`it failed (${name}`);
  };

  it("of a command", async () => {
    const path = await mkdtemp(join(tmpdir(), "tollgate-words-"));
    {
      await using _ = await serveControl({
        path,
        gate: createTestDispatcher({ broken: async () => broken() }),
      });
      const error: unknown = await callControl(path, "broken").catch((e: unknown) => e);
      expect(getFault(error)!.kind).toBe("internal");
      told(getFault(error)!.message);
      expect(getFault(error)!.message).toContain("engine-errors.test.ts:");
    }
    await rm(path, { recursive: true });
  });

  it("of another process", async () => {
    const [near, far] = [new EventEmitter(), new EventEmitter()];
    const channel = (own: EventEmitter, other: EventEmitter) =>
      Object.assign(own, {
        connected: true,
        send: (message: object) => other.emit("message", structuredClone(message)),
      }) as unknown as IpcChannel;
    createIpcLink(channel(far, near), { broken });
    const link = createIpcLink(channel(near, far), {});
    told(publicErrorText(await link.call("broken").catch((e: unknown) => e)));
  });

  it("of a plugin's setup", async () => {
    const acme = {
      "~tollgate": "frontend",
      api: 1,
      name: "acme",
      summary: "",
      setup: broken,
    } as unknown as Definition;
    const error: unknown = await startTestGateway({
      plugins: { acme },
      yaml: "frontends: [acme]",
    }).then(
      (open) => open[Symbol.asyncDispose](),
      (e: unknown) => e,
    );
    told((error as Error).message);
  });
});

it("invalid JSON is reported with the gateway's own message", async () => {
  const path = await mkdtemp(join(tmpdir(), "tollgate-words-"));
  {
    await using control = await serveControl({ path, gate: createTestDispatcher({}) });
    const { request } = await import("node:http");
    for (const [asked, body] of [
      ["/status", "{"],
      ["/%zz", "{}"],
      ["/status", "[1"],
    ] as const) {
      const text = await new Promise<string>((resolve, reject) => {
        const req = request({ socketPath: control.path, path: asked, method: "POST" }, (res) => {
          let said = "";
          res.on("data", (chunk) => (said += chunk)).on("end", () => resolve(said));
        });
        req.on("error", reject).end(body);
      });
      expect(JSON.parse(text).error).toMatchObject({
        kind: expect.stringMatching(/invalid|not_found/),
      });
      expect(text).not.toMatch(/Unexpected|Expected|malformed|JSON at/);
    }
  }
  await rm(path, { recursive: true });
});

/**
 * Places in which the text of any error is passed on unchanged: output for people, and transport to
 * another process.
 */
const EXEMPT = new Set([
  "model/error.ts",
  "runtime/workers/ipc-link.ts",
  "config/schema-dialect.ts",
]);
it("no other file uses an error's message without checking its origin", async () => {
  const src = new URL("../../../src/", import.meta.url).pathname;
  const files = (await readdir(src, { recursive: true })).filter(
    (file) => file.endsWith(".ts") && !/^(cli|testing)\//.test(file) && !EXEMPT.has(file),
  );
  const found: string[] = [];
  for (const file of files)
    if (/instanceof Error \? \w+\.message/.test(await readFile(join(src, file), "utf8")))
      found.push(file);
  expect(found).toEqual([]);
});
