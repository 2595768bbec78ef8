// A first start on a terminal: it prints the key and a link, the link opens the console once, and
// every page shows a next step.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { root } from "../kit/process/program.ts";
import { until } from "../kit/wait.ts";
import { axe, complaints } from "./browser.ts";
import type { Journey } from "./journeys.ts";

interface FirstRun extends AsyncDisposable {
  /** The console's link on the terminal. */
  readonly link: string;
}

/**
 * The built-in config on separate ports, as `npm start` runs it on a terminal, which `script`
 * provides.
 */
async function startOnTerminal(): Promise<FirstRun> {
  const dir = await mkdtemp(join(tmpdir(), "tollgate-first-"));
  const shipped = await readFile(join(root, "gateway.yaml"), "utf8");
  await writeFile(join(dir, "gateway.yaml"), shipped.replaceAll(/port: \d+/g, "port: 0"));
  const line = [
    join(root, "node_modules/.bin/node"),
    "--conditions=tollgate-source",
    "--disable-warning=ExperimentalWarning",
    join(root, "src/cli/bin.ts"),
    "serve",
  ].join(" ");
  const env = { PATH: process.env["PATH"] ?? "", HOME: dir, NO_COLOR: "1", TERM: "dumb" };
  const terminal = spawn("script", ["-qec", line, "/dev/null"], { cwd: dir, env });
  let shown = "";
  terminal.stdout.setEncoding("utf8").on("data", (text: string) => (shown += text));
  const said = (pattern: RegExp): string => pattern.exec(shown)?.[1] ?? "";
  const over = once(terminal, "exit");
  await until(
    () => /kill -HUP \d+/.test(shown) || terminal.exitCode !== null,
    () => shown,
  );
  const pid = Number(said(/kill -HUP (\d+)/));
  assert.ok(pid > 0, shown);
  return {
    link: said(/console +(http\S+)/),
    async [Symbol.asyncDispose]() {
      process.kill(pid, "SIGTERM");
      await over;
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** Before the first request: each page's data, or its next step. */
const NEXT: readonly (readonly [
  address: string,
  there: (page: Page) => ReturnType<Page["getByText"]>,
])[] = [
  ["", (page) => page.getByRole("heading", { name: "Send a first request" })],
  ["", (page) => page.getByRole("link", { name: "in the playground" })],
  ["/usage", (page) => page.locator(".empty").getByRole("link", { name: "Ask a model" })],
  ["/requests", (page) => page.locator(".empty").getByRole("link", { name: "Ask a model" })],
  ["/models", (page) => page.getByRole("rowheader", { name: "demo/echo" })],
  ["/providers", (page) => page.getByRole("rowheader", { name: "demo" })],
  ["/providers", (page) => page.getByText("OPENAI_API_KEY is not set")],
  ["/routing", (page) => page.locator(".empty").getByText("Explain fast")],
  ["/keys", (page) => page.getByRole("rowheader", { name: "first" })],
  ["/keys", (page) => page.locator(".empty").getByRole("button", { name: "Create an account" })],
  ["/config", (page) => page.getByRole("rowheader", { name: "providers.demo.use" })],
  ["/ledger", (page) => page.getByRole("button", { name: "Verify now" })],
  ["/audit", (page) => page.getByRole("rowheader", { name: "sign-in" })],
  ["/admins", (page) => page.getByRole("button", { name: "New admin" })],
  ["/playground", (page) => page.getByRole("button", { name: "Create a key for 1 hour" })],
];

export const firstRun: Journey = {
  name: "a first start on a terminal: its link opens the console once, and every page says what there is or what to do next",
  async run(_, browser) {
    await using started = await startOnTerminal();
    const { origin } = new URL(started.link);
    const context = await browser.newContext();
    const page = await context.newPage();
    const said = complaints(page);
    await page.goto(started.link);
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    for (const [address, there] of NEXT) {
      const at = `${origin}/console${address}`;
      if (page.url() !== at) await page.goto(at);
      await there(page).first().waitFor();
    }
    // The user follows the next step, and then the page has data.
    await page.goto(`${origin}/console/usage`);
    await page.locator(".empty").getByRole("link", { name: "Ask a model" }).click();
    await page.getByRole("button", { name: "Create a key for 1 hour" }).click();
    await page.getByLabel("Model", { exact: true }).fill("demo/echo");
    await page.getByLabel("Prompt").fill("A first word");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("Whole", { exact: true }).waitFor();
    for (const address of ["", "/usage?range=1h", "/requests"]) {
      await page.goto(`${origin}/console${address}`);
      await page.locator("main.page").getByText("demo/echo").first().waitFor();
      assert.equal(await page.locator(".empty").count(), 0, address);
    }
    assert.deepEqual(await axe(page), []);
    assert.deepEqual(said, []);
    const late = await browser.newContext();
    const second = await late.newPage();
    await second.goto(started.link);
    await second.getByRole("alert").waitFor();
    assert.deepEqual(await late.cookies(), []);
    await late.close();
    await context.close();
  },
};
