// The admin listener: routes of plugins for operators' programs with a token of the required role,
// with several processes. Nothing of it is on the public port, and no API key is accepted.
import { request as http, type IncomingHttpHeaders } from "node:http";
import { request as https, type RequestOptions } from "node:https";
import { existsSync, statSync, writeFileSync } from "node:fs";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { certificates } from "../../rig/faults/certificates.ts";
import { until } from "../../kit/wait.ts";
import { runTollgate } from "../../kit/process/command-line.ts";
import { NIGHTLY } from "../../kit/law-effort.ts";
import { startInProcess } from "../../kit/in-process.ts";

const example = (name: string) =>
  readFileSync(join(import.meta.dirname, "../../../examples", `${name}.ts`), "utf8");

const ROLES = ["metrics", "viewer", "operator", "owner"] as const;
/** Each contains its own name, and is long enough. */
const secret = (role: string) => `${role}-`.padEnd(32, "0123456789");

/** A route for each role, one without a role, and one that fails. */
const LEVELS = `
import { defineObserver, fail } from "tollgate/plugin";
export default defineObserver({
  api: 1, name: "levels", summary: "A route a role", sends: "nowhere",
  setup: () => ({ routes: [
    ...["metrics", "viewer", "operator", "owner"].map((role) => ({
      method: "GET", path: "/levels/" + role, role,
      handle: (x) => ({ status: 200, body: { who: x.identity.id, pid: process.pid } }),
    })),
    { method: "GET", path: "/levels/none", handle: () => ({ status: 200 }) },
    { method: "GET", path: "/levels/fault", role: "metrics", handle: () => fail("conflict", "Not now.") },
    { method: "GET", path: "/levels/broken", role: "metrics", handle: () => { throw new Error("canary-7f3a"); } },
  ] }),
});
`;

const tokens = (roles: readonly string[] = ROLES) =>
  roles.map((role) => `    ${role}: { role: ${role}, token: "\${env:T_${role}}" }`).join("\n");
const env = Object.fromEntries(ROLES.map((role) => [`T_${role}`, secret(role)]));

/** An admin listener without routes of plugins. */
const bare = (workers: number, at = "port: 0", roles?: readonly string[]) => `workers: ${workers}
admin:
  ${at}
  tokens:
${tokens(roles)}
frontends: [chat-completions]
providers: { demo: { use: demo } }
`;
const yaml = (...of: Parameters<typeof bare>) => `${bare(...of)}middleware: [auth, ./receipts.ts]
observers: [./counter.ts, ./levels.ts]
`;
const files = {
  "receipts.ts": example("receipts"),
  "counter.ts": example("counter"),
  "levels.ts": LEVELS,
};

const adminOf = async (gateway: Pick<Daemon, "ask">) =>
  ((await gateway.ask("status")) as { adminUrl: string }).adminUrl;
const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });
const chat = (gateway: Daemon, key = gateway.key) =>
  fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", connection: "close", ...bearer(key) },
    body: JSON.stringify({ model: "demo/echo", messages: [{ role: "user", content: "Hello." }] }),
  }).then(async (res) => (await res.arrayBuffer(), res));

/** The first matching response: records and receipts follow shortly after their response. */
async function once<T>(ask: () => Promise<T>, is: (now: T) => boolean): Promise<T> {
  let now: T | undefined;
  await until(
    async () => is((now = await ask())),
    () => JSON.stringify(now),
  );
  return now!;
}

describe.each(NIGHTLY ? [1, 2] : [2])("with %i processes", (workers) => {
  let gateway: Daemon;
  let admin: string;
  const get = (path: string, token?: string, base = admin) =>
    fetch(`${base}${path}`, token === undefined ? {} : { headers: bearer(token) });
  beforeAll(async () => {
    gateway = await startDaemon({ yaml: yaml(workers), files, env });
    admin = await adminOf(gateway);
  });
  afterAll(() => gateway?.[Symbol.asyncDispose]());

  it("each role includes the rights of the lower ones, and a route without a role requires the owner", async () => {
    for (const [i, role] of ROLES.entries()) {
      for (const [least, wanted] of ROLES.entries()) {
        const res = await get(`/levels/${wanted}`, secret(role));
        const body = (await res.json()) as { error: { code: string } };
        if (i >= least)
          expect(body).toEqual({
            who: expect.stringMatching(`^admin:${role}::file:${role}#[0-9a-f]{8}$`),
            pid: gateway.pid,
          });
        else expect([res.status, body.error.code]).toEqual([403, "role_too_low"]);
      }
      const { status } = await get("/levels/none", secret(role));
      expect(status).toBe(role === "owner" ? 200 : 403);
    }
  });

  it("rejects requests without a token, with a wrong token, and with a key", async () => {
    for (const token of [undefined, "", "wrong", `${secret("owner")}x`, gateway.key])
      for (const path of ["/levels/metrics", "/counts", "/receipts"]) {
        const res = await get(path, token);
        expect([path, res.status]).toEqual([path, 401]);
        expect(await res.text()).not.toContain(secret("owner"));
      }
    const x = await fetch(`${admin}/counts`, { headers: { "x-api-key": secret("owner") } });
    expect(x.status).toBe(401);
  });

  it("the public port has no admin routes, the admin port has no models, and a token is no key", async () => {
    expect((await get("/counts", secret("owner"), gateway.url)).status).toBe(404);
    expect((await get("/v1/receipts/x", secret("owner"), gateway.url)).status).toBe(401);
    expect((await chat(gateway, secret("owner"))).status).toBe(401);
    for (const path of ["/v1/chat/completions", "/v1/receipts/x", "/nothing"]) {
      const res = await get(path, secret("owner"));
      expect(res.status).toBe(404);
      expect(await res.text()).not.toContain("/counts");
    }
    expect((await get("/healthz")).status).toBe(200);
    expect((await get("/readyz")).status).toBe(200);
  });

  it("rejects a Host name that a web page could point here, and a page of another origin", async () => {
    const raw = (headers: Record<string, string>) =>
      new Promise<number>((resolve, reject) => {
        const own = { ...bearer(secret("owner")), ...headers };
        http(`${admin}/counts`, { headers: own }, (res) => resolve(res.resume().statusCode ?? 0))
          .on("error", reject)
          .end();
      });
    const { host } = new URL(admin);
    expect(await raw({ host: "evil.example" })).toBe(421);
    expect(await raw({ origin: "https://evil.example" })).toBe(403);
    expect(await raw({ origin: "null" })).toBe(403);
    expect(await raw({ origin: `http://${host}`, host })).toBe(200);
  });

  it("returns the message of a fault, and of no other error", async () => {
    const fault = await get("/levels/fault", secret("metrics"));
    expect([fault.status, await fault.json()]).toMatchObject([
      409,
      { error: { message: "Not now." } },
    ]);
    const broken = await get("/levels/broken", secret("metrics"));
    expect(broken.status).toBe(500);
    expect(await broken.text()).not.toContain("canary");
  });

  it("returns notes of hooks and observers: to operators, and to each key its own", async () => {
    const ids = await Promise.all(
      Array.from({ length: 12 }, async () => (await chat(gateway)).headers.get("x-request-id")!),
    );
    const receipt = (id: string, key = gateway.key) => get(`/v1/receipts/${id}`, key, gateway.url);
    for (const id of ids) {
      const res = await once(
        () => receipt(id),
        ({ status }) => status === 200,
      );
      expect(await res.json()).toEqual({ status: 200, model: "demo/echo", cost_nano: "0" });
    }
    const made = (await gateway.ask("keys.create", {})) as { secret: string };
    expect((await receipt(ids[0]!, made.secret)).status).toBe(404);
    expect((await receipt(ids[0]!, "tg_nobody")).status).toBe(401);
    // Keys are restricted to frontends, and this is one by its full name.
    const other = (await gateway.ask("keys.create", { frontends: ["chat-completions"] })) as {
      secret: string;
    };
    expect((await receipt(ids[0]!, other.secret)).status).toBe(403);
    const counts = await once(
      async () =>
        (await (await get("/counts", secret("metrics"))).json()) as Record<string, number>,
      (now) => (now["200"] ?? 0) >= 24 && now["403"] === 1,
    );
    // Served and rejected requests of clients, and none of the admin listener: no 409, no 500.
    expect(Object.keys(counts)).toEqual(["200", "401", "403", "404"]);
    expect(counts["200"]).toBe(24);
  });

  it("a reload revokes a removed token; a changed address needs a restart", async () => {
    await gateway.write(yaml(workers, "port: 0", ["viewer", "owner"]));
    await gateway.line(({ msg }) => msg === "reloaded");
    expect((await get("/levels/metrics", secret("metrics"))).status).toBe(401);
    expect((await get("/levels/metrics", secret("viewer"))).status).toBe(200);
    await gateway.write(yaml(workers, "port: 1"));
    const line = await gateway.line(({ msg }) => msg.startsWith("reload rejected"));
    expect(line["restart_keys"]).toEqual(["admin"]);
  });

  it("logs contain no token", async () => {
    expect((await runTollgate(gateway, ["status"])).out).toContain(admin);
    expect(await gateway.stop()).toBe(0);
    for (const role of ROLES) expect(gateway.output()).not.toContain(secret(role));
  });
});

describe("on a unix socket", () => {
  const onSocket = (path: string, token: string) =>
    new Promise<number>((resolve, reject) => {
      const headers = { ...bearer(token), host: "localhost" };
      http({ socketPath: path, path: "/admin/v1/status", headers }, (res) =>
        resolve(res.resume().statusCode ?? 0),
      )
        .on("error", reject)
        .end();
    });

  it("is private to the user, replaces the socket of a dead gateway, and is removed at the end", async () => {
    const start = (dir?: string) =>
      startDaemon({
        yaml: bare(NIGHTLY ? 2 : 1, "socket: ./admin.sock"),
        env,
        ...(dir && { dir }),
      });
    const first = await start();
    const path = join(first.dir, "admin.sock");
    expect(await adminOf(first)).toBe(`unix:${path}`);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(await onSocket(path, secret("viewer"))).toBe(200);
    expect(await onSocket(path, "nobody")).toBe(401);
    first.kill("SIGKILL");
    await first.exit;
    expect(existsSync(path)).toBe(true);
    await using second = await start(first.dir);
    expect(await onSocket(path, secret("viewer"))).toBe(200);
    expect(await second.stop()).toBe(0);
    expect(existsSync(path)).toBe(false);
  });

  it("leaves another file at this path unchanged", async () => {
    await using gateway = await startInProcess({ yaml: "providers: { demo: { use: demo } }\n" });
    const taken = join(gateway.dir, "taken");
    writeFileSync(taken, "mine");
    for (const socket of [taken, join(gateway.stateDir, "control.sock")])
      await expect(startInProcess({ yaml: bare(1, `socket: ${socket}`), env })).rejects.toThrow(
        /is in use/,
      );
    expect(readFileSync(taken, "utf8")).toBe("mine");
  });
});

describe("over TLS", () => {
  const { good, root } = certificates("localhost");
  const tls = "port: 0\n  tls: { cert: ./cert.pem, key: ./key.pem }";
  const given = { ...files, "cert.pem": good.cert, "key.pem": good.key };

  interface Told {
    readonly status: number;
    readonly headers: IncomingHttpHeaders;
  }
  const over = (at: string, path: string, more: RequestOptions, body?: string) =>
    new Promise<Told>((resolve, reject) => {
      const of = { ca: root, servername: "localhost", agent: false, ...more };
      https(new URL(path, at), of, (res) =>
        resolve({ status: res.resume().statusCode ?? 0, headers: res.headers }),
      )
        .on("error", reject)
        .end(body);
    });

  it("accepts only TLS 1.2 and newer, and marks session cookies as secure", async () => {
    await using gateway = await startInProcess({ yaml: yaml(1, tls), files: given, env });
    const at = await adminOf(gateway);
    expect(at).toMatch(/^https:[/][/]/);
    const asked = { headers: bearer(secret("viewer")) };
    expect((await over(at, "/levels/viewer", asked)).status).toBe(200);
    expect((await over(at, "/admin/v1/status", asked)).status).toBe(200);
    expect((await over(at, "/levels/viewer", {})).status).toBe(401);
    await expect(over(at, "/levels/viewer", { ...asked, ca: good.cert })).rejects.toThrow();
    const old = { ...asked, maxVersion: "TLSv1.1", minVersion: "TLSv1" } as const;
    await expect(over(at, "/levels/viewer", old)).rejects.toThrow();
    await expect(fetch(at.replace("https:", "http:"))).rejects.toThrow();
    const { url, code } = (await gateway.ask("console")) as { url: string; code: string };
    expect(url.startsWith(`${at}/#`)).toBe(true);
    const page = { "content-type": "application/json", "x-tollgate-console": "1" };
    const login = (origin: string) =>
      over(
        at,
        "/admin/v1/session",
        { method: "POST", headers: { ...page, origin } },
        JSON.stringify({ code }),
      );
    expect((await login(at.replace("https:", "http:"))).status).toBe(403);
    const { status, headers } = await login(at);
    expect(status).toBe(200);
    expect(String(headers["set-cookie"])).toMatch(/^__Host-tollgate=.*; Secure$/);
  });

  it("a missing or mismatched private key is reported before any port is open", async () => {
    const other = certificates("localhost").good.key;
    for (const [wrong, told] of [
      [{ "cert.pem": good.cert }, "tls_unreadable"],
      [{ "cert.pem": good.cert, "key.pem": other }, "tls_unusable"],
      [{ "cert.pem": "no certificate", "key.pem": good.key }, "tls_unusable"],
    ] as const)
      await expect(startDaemon({ yaml: bare(1, tls), files: wrong, env })).rejects.toThrow(told);
  });
});

it("without admin, nothing listens, and check reports what is not served", async () => {
  const none = `frontends: [chat-completions]\nmiddleware: [auth, ./receipts.ts]\nobservers: [./counter.ts]\nproviders: { demo: { use: demo } }\n`;
  await using gateway = await startInProcess({ yaml: none, files });
  expect(((await gateway.ask("status")) as { adminUrl?: string }).adminUrl).toBeUndefined();
  const { code, out } = await runTollgate(gateway, ["check"]);
  expect(code).toBe(0);
  expect(out).toMatch(/receipts.*GET \/receipts on the admin listener, which is not configured/);
  expect(out).toMatch(/counter.*GET \/counts on the admin listener, which is not configured/);
  expect(gateway.log.filter(({ msg }) => msg.includes("on the admin listener"))).toHaveLength(2);
});
