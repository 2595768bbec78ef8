// `tollgate doctor`: problems are found, each finding has a fix, and the exit code shows the
// severity.
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { jsonResponse, startUpstream } from "tollgate/testing";
import { checkClock, checkVersions } from "../../../src/cli/doctor/system.ts";
import type { DoctorFinding } from "../../../src/cli/doctor/finding.ts";
import { createTestFolder, runCliInProcess } from "../../kit/process/command-line.ts";
import { startDaemon } from "../../kit/process/daemon.ts";

interface Told {
  readonly code: number | null;
  readonly ok: boolean;
  readonly findings: readonly DoctorFinding[];
}

async function doctor(path: string, ...args: readonly string[]): Promise<Told> {
  const { code, out, err } = await runCliInProcess([
    "doctor",
    "-c",
    join(path, "gateway.yaml"),
    "--json",
    ...args,
  ]);
  if (!out.startsWith("{")) throw new Error(err);
  return { code, ...(JSON.parse(out) as Omit<Told, "code">) };
}
const of = ({ findings }: Told, id: string) => findings.filter((each) => each.id === id);
const levels = (told: Told, id: string) => of(told, id).map(({ level }) => level);

const LIST = {
  "GET /v1/models": jsonResponse({ object: "list", data: [{ id: "m", object: "model" }] }),
};

it("a healthy machine has no error, and every warning has a fix", async () => {
  await using up = await startUpstream(LIST);
  await using here = await createTestFolder({
    "gateway.yaml": `providers:\n  demo: { use: demo }\n  own: { use: openai-compatible, with: { base_url: "${up.url}/v1", api_key: "\${file:./key}" } }\n`,
    key: "k",
  });
  chmodSync(join(here.path, "key"), 0o600);
  const told = await doctor(here.path);
  expect(told.findings.filter(({ level }) => level === "error")).toEqual([]);
  expect([told.code, told.ok]).toEqual([0, true]);
  expect(levels(told, "config")).toEqual(["ok"]);
  expect(levels(told, "gateway")).toEqual(["note"]);
  expect(levels(told, "disk/fsync").length).toBe(1);
  expect(of(told, "providers.own/call")[0]!.message).toContain("1 model");
  expect(levels(told, "listen/loopback")).toEqual(["ok"]);
  for (const { level, action } of told.findings)
    if (level === "warning" || level === "error") expect(action).toMatch(/\w/);
});

it("a rejected key and an unreachable provider are errors: exit code 1", async () => {
  await using up = await startUpstream({
    "GET /v1/models": jsonResponse({ error: { message: "Incorrect API key provided" } }, 401),
  });
  const gone = createServer().listen(0, "127.0.0.1");
  await once(gone, "listening");
  const { port } = gone.address() as AddressInfo;
  gone.close();
  await using here = await createTestFolder({
    "gateway.yaml": `providers:
  own: { use: openai-compatible, with: { base_url: "${up.url}/v1", api_key: k } }
  gone: { use: openai-compatible, with: { base_url: "http://127.0.0.1:${port}/v1", api_key: k } }
`,
  });
  const told = await doctor(here.path);
  expect([told.code, told.ok]).toEqual([1, false]);
  expect(levels(told, "providers.own/call")).toEqual(["error"]);
  expect(levels(told, "providers.own/connect")).toEqual(["ok"]);
  expect(levels(told, "providers.gone/connect")).toEqual(["error"]);
});

it("an invalid gateway.yaml is reported with its line: exit code 78", async () => {
  await using here = await createTestFolder({
    "gateway.yaml": "providers: { demo: { use: demo } }\nlisten: { prot: 1 }\n",
  });
  const told = await doctor(here.path, "--offline");
  expect(told.code).toBe(78);
  expect(of(told, "config/problem")[0]).toMatchObject({
    level: "error",
    message: expect.stringContaining(":2"),
  });
});

it("reports files that others can read or write, a public port without TLS, and expiring dates", async () => {
  await using here = await createTestFolder({
    "gateway.yaml": `listen: { host: 0.0.0.0, port: 0 }
providers:
  own:
    use: openai-compatible
    with: { base_url: "http://127.0.0.1:9/v1" }
    credentials: [{ name: a, with: { api_key: "\${file:./secret}" }, zdr: { declared: true, until: 2020-01-01 } }]
`,
    secret: "k",
  });
  chmodSync(join(here.path, "secret"), 0o644);
  chmodSync(join(here.path, "gateway.yaml"), 0o666);
  mkdirSync(join(here.path, ".tollgate"));
  chmodSync(join(here.path, ".tollgate"), 0o755);
  const told = await doctor(here.path, "--offline", "--strict");
  expect(told.code).toBe(1);
  expect(levels(told, "permissions/read")).toEqual(["warning"]);
  expect(levels(told, "permissions/written")).toEqual(["warning"]);
  expect(levels(told, "permissions/state")).toEqual(["warning"]);
  expect(of(told, "policy/expires")[0]!.message).toContain("expired on 2020-01-01");
  expect(told.findings.some(({ id }) => id.endsWith("/call"))).toBe(false);
});

it("a running gateway sends the test calls itself", async () => {
  await using gateway = await startDaemon({ yaml: "providers: { demo: { use: demo } }\n" });
  writeFileSync(join(gateway.dir, "unrelated"), "");
  const told = await doctor(gateway.dir);
  expect(levels(told, "gateway")).toEqual(["ok"]);
  expect(of(told, "providers.demo/call")[0]).toMatchObject({
    level: "ok",
    message: expect.stringContaining("responded with"),
  });
  const { out } = await runCliInProcess(["doctor", "-c", gateway.file]);
  expect(out).toMatch(/^ok +tollgate /);
});

describe("single checks", () => {
  it("Node version", () => {
    const on = (node: string) => checkVersions("1.0.0", { ...process.versions, node })[0]!.level;
    expect([on("22.1.0"), on("24.1.0"), on("25.1.0"), on("26.0.0")]).toEqual([
      "error",
      "ok",
      "note",
      "ok",
    ]);
  });
  it("clock: uses the median of several time sources", () => {
    const said = (...skews: number[]) => checkClock(skews)[0]!.level;
    expect([said(0), said(0, 9e9, 10), said(60_000), said(-900_000)]).toEqual([
      "ok",
      "ok",
      "warning",
      "error",
    ]);
  });
});
