import { readFile, stat } from "node:fs/promises";
import { connect, createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createTestFolder, MINIMAL_CONFIG } from "../kit/process/command-line.ts";
import { killUntilExit } from "../kit/process/program.ts";
import { until } from "../kit/wait.ts";

const ask = (url: string, key: string, model = "demo/echo") =>
  fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] }),
  });

test("a first start prints the address, writes the first key to a file, serves a request, and ends on SIGTERM", async () => {
  await using here = await createTestFolder({ "gateway.yaml": MINIMAL_CONFIG });
  const { url, kill, log, exit, pid } = await here.serve();
  const listening = log.find(({ msg }) => msg === "listening")!;
  expect(listening).toMatchObject({ level: "info", pid, generation: 1 });
  const path = join(here.path, ".tollgate/first-key");
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  const key = (await readFile(path, "utf8")).trim();
  expect(JSON.stringify(log)).not.toContain(key);
  expect(log).toContainEqual(expect.objectContaining({ path }));
  expect((await ask(url, key)).status).toBe(200);
  expect((await ask(url, `${key}x`)).status).toBe(401);
  kill("SIGTERM");
  expect((await exit).code).toBe(0);
});

test("without a file, uses the built-in config and prints so", async () => {
  await using here = await createTestFolder();
  const { log, kill, exit } = await here.serve();
  expect(log.map(({ msg }) => msg)).toContainEqual(
    expect.stringContaining("no gateway.yaml found"),
  );
  kill("SIGINT");
  expect((await exit).code).toBe(0);
});

test("on a new machine, prints which providers lack a variable, and the built-in alias responds", async () => {
  await using here = await createTestFolder();
  const said = "openai (OPENAI_API_KEY is not set), anthropic (ANTHROPIC_API_KEY is not set)";
  const env = { ANTHROPIC_API_KEY: "" };
  expect((await here.tollgate(["check"])).out).toMatch(/is valid: .*\nnot mounted: .*\n$/);
  expect((await here.tollgate(["check"])).out).toContain(`not mounted: ${said}`);
  const check = JSON.parse((await here.tollgate(["check", "--json"], { env })).out) as unknown;
  expect(check).toMatchObject({
    unmountedProviders: [
      { provider: "openai", reason: "OPENAI_API_KEY is not set" },
      { provider: "anthropic", reason: "ANTHROPIC_API_KEY is empty" },
    ],
  });
  const { url, line } = await here.serve();
  await line(/^providers not mounted: openai \(OPENAI_API_KEY is not set\), anthropic/);
  expect((await here.tollgate(["status"])).out).toContain(said);
  const key = (await readFile(join(here.path, ".tollgate/first-key"), "utf8")).trim();
  const fast = await ask(url, key, "fast");
  expect([fast.status, ((await fast.json()) as { model: string }).model]).toEqual([
    200,
    "demo/echo",
  ]);
  // The message for a client names available models but no variable. The operator's message names
  // it.
  const none = await ask(url, key, "openai/gpt-6");
  expect(none.status).toBe(404);
  expect(await none.text()).not.toMatch(/OPENAI_API_KEY|when:/);
  expect((await here.tollgate(["explain", "openai/gpt-6"])).err).toContain(
    "Left out: openai/gpt-6: OPENAI_API_KEY is not set.",
  );
});

test("does not start with an invalid config: exit code 78", async () => {
  await using here = await createTestFolder({
    "gateway.yaml": MINIMAL_CONFIG.replace("demo }", "dmo }"),
  });
  const { code, err } = await here.tollgate(["serve"]);
  expect(code).toBe(78);
  expect(err).toMatch(
    /gateway\.yaml:6:16 {2}error[\s\S]*1 error\. The gateway was not started\.\n$/,
  );
  expect((await here.tollgate(["serve", "-c", "nowhere.yaml"])).code).toBe(78);
});

test("reports a port in use and a second gateway on one state directory, on the one line that programs read", async () => {
  const said = ({ code, out, err }: { code: number | null; out: string; err: string }) => {
    const { level, msg } = JSON.parse(out) as { level: string; msg: string };
    return [code, err, level, msg];
  };
  await using here = await createTestFolder({ "gateway.yaml": MINIMAL_CONFIG });
  const other = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => other.once("listening", resolve));
  const { port } = other.address() as AddressInfo;
  const taken = await here.tollgate(["serve", "--port", `${port}`]);
  await using bare = await createTestFolder({});
  const admin = await bare.tollgate(["serve", "--port", "0", "--admin-port", `${port}`]);
  other.close();
  expect(said(admin)).toEqual([1, "", "error", expect.stringContaining("with --admin-port or")]);
  expect(said(taken)).toEqual([
    1,
    "",
    "error",
    expect.stringContaining(`Port ${port} on 127.0.0.1 is already in use`),
  ]);
  const { pid } = await here.serve();
  const second = await here.tollgate(["serve", "--port", "0"]);
  expect(said(second)).toEqual([
    1,
    "",
    "error",
    expect.stringContaining(`Another gateway (pid ${pid}) is using ${here.path}/.tollgate`),
  ]);
  const wrong = await here.tollgate(["serve", "--port", "http"]);
  expect([wrong.code, wrong.err]).toEqual([1, expect.stringContaining("--port must be a number")]);
});

test("every command that needs the state directory reports that it is not a directory", async () => {
  await using here = await createTestFolder({
    "gateway.yaml": `state_dir: state\n${MINIMAL_CONFIG.replace("memory", "sqlite")}`,
    state: "a file",
  });
  const words = `The state directory ${here.path}/state cannot be used: it is a file. Correct the cause, or choose another directory with state_dir.`;
  for (const args of [
    ["keys", "list"],
    ["plugin", "store", "head"],
  ]) {
    const { code, err } = await here.tollgate(args);
    expect([code, err]).toEqual([1, `error  ${words}\n`]);
  }
  const { code, out, err } = await here.tollgate(["serve", "--port", "0"]);
  expect([code, err]).toEqual([1, ""]);
  expect(JSON.parse(out)).toMatchObject({ msg: `gateway start failed: ${words}` });
});

test("commands reach it: status, explain, keys; a file change and a signal reload it", async () => {
  await using here = await createTestFolder({ "gateway.yaml": MINIMAL_CONFIG });
  const { url, kill, line, exit, pid } = await here.serve();
  const status = JSON.parse((await here.tollgate(["status", "--json"])).out) as Record<
    string,
    unknown
  >;
  expect(status).toMatchObject({ url, pid, generation: 1, state: "ready" });
  expect((await here.tollgate(["status"])).out).toContain(`ready at ${url}`);

  const made = await here.tollgate(["keys", "create", "--name", "ci", "--models", "demo/*"]);
  const key = made.out.trim();
  expect((await ask(url, key)).status).toBe(200);
  const rotated = (await here.tollgate(["keys", "rotate", "ci", "--overlap", "1h"])).out.trim();
  expect([(await ask(url, key)).status, (await ask(url, rotated)).status]).toEqual([200, 200]);
  expect((await here.tollgate(["keys", "revoke", "ci"])).code).toBe(0);
  expect([(await ask(url, key)).status, (await ask(url, rotated)).status]).toEqual([401, 401]);
  expect((await here.tollgate(["keys", "list"])).out).toMatch(/ci +revoked[\s\S]*ci +revoked/);

  await here.write("gateway.yaml", `${MINIMAL_CONFIG}models: { quick: [demo/echo] }\n`);
  await line(/^reloaded$/);
  const explained = await here.tollgate(["explain", "quick"]);
  expect([explained.code, explained.err]).toEqual([0, "From the running gateway:\n"]);
  expect(explained.out).toContain("demo/echo");

  await here.write("gateway.yaml", MINIMAL_CONFIG.replace("demo }", "dmo }"));
  const { problems } = (await line(/^reload rejected/)) as unknown as { problems: string[] };
  expect(problems).toEqual([expect.stringMatching(/gateway\.yaml:6:16 {2}providers\.demo/)]);
  const refused = await here.tollgate(["status"]);
  expect(refused.out).toMatch(
    /last reload +rejected: the config has errors[\s\S]*gateway\.yaml:6:16 {2}error/,
  );
  // The file has errors now, and the gateway is found nevertheless.
  expect((await here.tollgate(["explain", "quick"])).code).toBe(0);
  await here.write("gateway.yaml", `${MINIMAL_CONFIG}models: { quick: [demo/echo] }\n`);
  await until(async () => (await here.tollgate(["explain", "quick"])).out.includes("demo/echo"));
  kill("SIGHUP");
  await line(/config unchanged/);
  kill("SIGTERM");
  expect((await exit).code).toBe(0);
});

test("open requests finish; a second signal aborts them", async () => {
  await using here = await createTestFolder({ "gateway.yaml": MINIMAL_CONFIG });
  for (const again of [false, true]) {
    const { url, kill, line, exit } = await here.serve(["--no-watch"]);
    const key = (await readFile(join(here.path, ".tollgate/first-key"), "utf8")).trim();
    const body = JSON.stringify({
      model: "demo/echo",
      messages: [{ role: "user", content: "Hi" }],
    });
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    let answer = "";
    socket.on("data", (chunk: Buffer) => (answer += chunk.toString()));
    socket.on("error", () => {});
    const head = [
      "POST /v1/chat/completions HTTP/1.1",
      "Host: localhost",
      `Authorization: Bearer ${key}`,
      "Content-Type: application/json",
      `Content-Length: ${body.length}`,
    ];
    socket.write(`${head.join("\r\n")}\r\n\r\n${body.slice(0, 20)}`);
    const inFlight = async () =>
      JSON.parse((await here.tollgate(["status", "--json"])).out).generations[0].inFlight;
    await until(async () => (await inFlight()) === 1);
    kill("SIGTERM");
    await line(/shutting down after open requests/);
    if (again) await killUntilExit({ kill, exit }, "SIGTERM");
    else socket.write(body.slice(20));
    expect((await exit).code).toBe(again ? 1 : 0);
    expect(answer).toMatch(
      again ? /^$/ : /^HTTP\/1\.1 200 [\s\S]*connection: close[\s\S]*"content":"Hi"/i,
    );
    socket.destroy();
  }
});
