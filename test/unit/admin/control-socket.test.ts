import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { callControl } from "../../../src/admin/socket/control-client.ts";
import {
  type CommandHandlerMap,
  type ControlSocket,
  serveControl,
} from "../../../src/admin/socket/control-socket.ts";
import { createTestDispatcher } from "../../kit/test-dispatcher.ts";
import { findControlSocket } from "../../../src/admin/socket/control-socket-path.ts";
import { fail, getFault } from "../../../src/model/error.ts";

let folder: string;
const open: ControlSocket[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tollgate-control-"));
});
afterEach(async () => {
  for (const control of open.splice(0)) await control[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

async function serve(commands: CommandHandlerMap = {}, path = folder): Promise<ControlSocket> {
  const control = await serveControl({
    path,
    gate: createTestDispatcher({ status: async () => ({ pid: 42 }), ...commands }),
  });
  open.push(control);
  return control;
}

const faultIn = async (work: Promise<unknown>) =>
  getFault(await work.catch((error: unknown) => error));
const mode = async (path: string) => (await stat(path)).mode & 0o777;
const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  );

describe("a command", () => {
  test("gets its input, and its result is returned", async () => {
    await serve({
      "middleware.usage/top": async (input) => ({ got: input, money: 12n, none: undefined }),
    });
    expect(await callControl(folder, "middleware.usage/top", { n: 3, text: "äöü\n" })).toEqual({
      got: { n: 3, text: "äöü\n" },
      money: "12",
    });
  });

  test("may return nothing", async () => {
    await serve({ nothing: async () => {} });
    expect(await callControl(folder, "nothing")).toBeNull();
  });

  test("that fails rejects with the same fault", async () => {
    await serve({
      bad: async () =>
        fail("not_found", "No such model.", { code: "model", details: { near: "x" } }),
    });
    expect(await faultIn(callControl(folder, "bad"))).toEqual({
      kind: "not_found",
      message: "No such model.",
      code: "model",
      details: { near: "x" },
    });
  });

  test.each(["nobody", "toString", "__proto__", "constructor"])(
    "%s does not exist",
    async (name) => {
      await serve();
      expect(await faultIn(callControl(folder, name))).toMatchObject({ code: "unknown_command" });
    },
  );

  test("with a result that JSON cannot express is an error", async () => {
    const loop: Record<string, unknown> = {};
    loop["self"] = loop;
    await serve({
      loop: async () => loop,
      thrown: async () => Promise.reject(new TypeError("oops")),
    });
    expect(await faultIn(callControl(folder, "loop"))).toMatchObject({ kind: "internal" });
    expect((await faultIn(callControl(folder, "thrown")))!.message).toMatch(
      /^it failed \(TypeError/,
    );
  });

  test("runs concurrently with others", async () => {
    await serve({ twice: async ({ n }) => Number(n) * 2 });
    const asked = Array.from({ length: 50 }, (_, n) => callControl(folder, "twice", { n }));
    expect(await Promise.all(asked)).toEqual(Array.from({ length: 50 }, (_, n) => n * 2));
  });

  test("reports if no gateway is running", async () => {
    expect(await faultIn(callControl(folder, "status"))).toMatchObject({ code: "not_running" });
    expect(await faultIn(callControl(join(folder, "no/such"), "status"))).toMatchObject({
      code: "not_running",
    });
  });
});

describe("the socket", () => {
  test("is private to the user, also in a directory that was open before", async () => {
    await chmod(folder, 0o755);
    const { path } = await serve();
    expect(path).toBe(join(folder, "control.sock"));
    expect([await mode(folder), await mode(path)]).toEqual([0o700, 0o600]);
  });

  test("is created if missing, and removed at the end", async () => {
    const state = join(folder, "deep/state");
    const control = await serve({}, state);
    expect(await callControl(state, "status")).toEqual({ pid: 42 });
    await control[Symbol.asyncDispose]();
    expect(await exists(control.path)).toBe(false);
  });

  test("of a live gateway is an error, and that gateway continues", async () => {
    await serve();
    const fault = await faultIn(serve());
    expect(fault).toMatchObject({ kind: "conflict", code: "already_running" });
    expect(fault?.message).toContain("(pid 42)");
    expect(await callControl(folder, "status")).toEqual({ pid: 42 });
  });

  test("of another live program is an error too", async () => {
    const other = createServer((socket) => socket.end("hello")).listen(
      join(folder, "control.sock"),
    );
    await once(other, "listening");
    expect(await faultIn(serve())).toMatchObject({ code: "already_running" });
    other.close();
  });

  test("of a killed gateway is replaced", async () => {
    const script = `require("node:net").createServer().listen(process.argv[1], () => console.log("up"))`;
    const child = spawn(process.execPath, ["-e", script, join(folder, "control.sock")]);
    await once(child.stdout, "data");
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(await exists(join(folder, "control.sock"))).toBe(true);
    await serve();
    expect(await callControl(folder, "status")).toEqual({ pid: 42 });
  });
});

describe("a path that is too long for a socket", () => {
  const long = () => join(folder, "a".repeat(60), "ä".repeat(40));

  test("is replaced by a private one, which is found and removed", async () => {
    const control = await serve({}, long());
    expect(control.path.length).toBeLessThan(100);
    expect([await mode(dirname(control.path)), await mode(control.path)]).toEqual([0o700, 0o600]);
    expect((await readFile(join(long(), "control.path"), "utf8")).trim()).toBe(control.path);
    expect(await callControl(long(), "status")).toEqual({ pid: 42 });
    expect(await faultIn(serve({}, long()))).toMatchObject({ code: "already_running" });
    await control[Symbol.asyncDispose]();
    expect([
      await exists(dirname(control.path)),
      await exists(join(long(), "control.path")),
    ]).toEqual([false, false]);
  });

  test("is found with another TMPDIR too", async () => {
    await serve({}, long());
    const before = process.env["TMPDIR"];
    process.env["TMPDIR"] = folder;
    try {
      expect(await callControl(long(), "status")).toEqual({ pid: 42 });
    } finally {
      if (before === undefined) delete process.env["TMPDIR"];
      else process.env["TMPDIR"] = before;
    }
  });

  test.each(["open to others", "a link"])("is rejected if the directory is %s", async (what) => {
    const place = dirname(await findControlSocket(long()));
    if (what === "a link") {
      await mkdir(join(folder, "mine"), { mode: 0o700 });
      await symlink(join(folder, "mine"), place);
    } else {
      await mkdir(place);
      await chmod(place, 0o777);
    }
    await writeFile(join(place, "trap"), "");
    expect(await faultIn(serve({}, long()))).toMatchObject({ code: "socket_folder" });
    await rm(place, { recursive: true });
  });
});
