// Error texts invented by a provider, on every page that may show one: the rejection, its details,
// its model list, and its response in the playground.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, Page } from "playwright-core";
import { startDaemon, type Daemon } from "../kit/process/daemon.ts";
import { PAYLOADS, type Wrong } from "./attacks.ts";
import { complaints } from "./browser.ts";

const STATUSES = [400, 401, 403, 404, 422, 429, 500, 503];
const SHOWN = "<img src=x onerror=xss()>";

/** Each response is an error, and each of its members is one of the payloads. */
async function evil() {
  let n = 0;
  const server = createServer((req, res) => {
    const text = req.url?.includes("shown") ? SHOWN : PAYLOADS[n % PAYLOADS.length]!;
    const list = { data: PAYLOADS.map((id) => ({ id, object: "model", owned_by: text })) };
    const error = { message: text, type: text, code: text, param: text };
    const [status, said] = req.url?.endsWith("/models")
      ? [200, { object: "list", ...list }]
      : [STATUSES[n++ % STATUSES.length]!, { error }];
    req.resume().on("end", () => {
      res.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(said));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { at, end: () => (server.closeAllConnections(), server.close()) };
}

const yaml = (at: string) => `
admin: { port: 0 }
frontends: [chat-completions, messages, responses]
middleware: [auth, limits, usage]
observers: [console]
providers:
  evil: { use: openai-compatible, with: { base_url: "${at}/v1" } }
  shown: { use: openai-compatible, with: { base_url: "${at}/shown" } }
`;

async function asked({ url, key, ask }: Daemon): Promise<string[]> {
  const ids: string[] = [];
  for (const payload of PAYLOADS) {
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: `evil/m${ids.length}`,
        messages: [{ role: "user", content: payload }],
      }),
    });
    await answer.arrayBuffer();
    ids.push(answer.headers.get("x-request-id")!);
  }
  await ask("models.refresh").catch(() => {});
  await ask("providers.test", { provider: "evil", model: "m0" }).catch(() => {});
  return ids;
}

/** The error is shown literally, as text only. */
async function inPlayground(page: Page, console: string, wrong: Wrong): Promise<void> {
  await page.goto(`${console}/playground?model=shown/m`);
  await page.getByRole("button", { name: "Create a key for 1 hour" }).click();
  await page.getByRole("button", { name: "Send" }).click();
  await page
    .getByText(SHOWN)
    .first()
    .waitFor({ timeout: 60_000 })
    .catch(() => wrong.push("errors: the provider's words are not shown as text"));
  if ((await page.locator("main.page img").count()) > 0) wrong.push("errors: a picture was made");
}

export async function errorTexts(browser: Browser, wrong: Wrong): Promise<void> {
  const upstream = await evil();
  await using gateway = await startDaemon({ yaml: yaml(upstream.at) });
  const context = await browser.newContext();
  try {
    const ids = await asked(gateway);
    const { url } = (await gateway.ask("console")) as { url: string };
    const { adminUrl: admin } = (await gateway.ask("status")) as { adminUrl: string };
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    await page.goto(url);
    await page.locator("main.page").waitFor();
    const found = complaints(page);
    await page.exposeFunction("xss", () => wrong.push("errors: a text was run"));
    for (const address of [
      "",
      "/requests?failed=yes",
      ...ids.slice(0, 4).map((id) => `/requests/${id}`),
      "/providers",
      "/providers?provider=evil",
      "/models",
      "/models?provider=evil",
      "/routing?model=evil/m1",
      "/usage?by=outcome",
      "/audit",
    ]) {
      await page.goto(`${admin}/console${address}`);
      await page.locator("main.page").waitFor();
      await page.waitForLoadState("networkidle", { timeout: 800 }).catch(() => {});
    }
    await inPlayground(page, `${admin}/console`, wrong);
    const policy = found.filter((line) => !/Failed to load resource/.test(line));
    wrong.push(...policy.map((line) => `errors: ${line}`));
  } finally {
    await context.close();
    upstream.end();
  }
}
