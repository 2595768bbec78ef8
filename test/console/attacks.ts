// Attacks on the console, from outside and through client text: each in a real browser, or as a raw
// request.
import { request } from "node:http";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { complaints } from "./browser.ts";
import type { Stage } from "./stage.ts";

/** Successful attacks, as sentences. */
export type Wrong = string[];

interface Told {
  readonly status: number;
  readonly text: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** Like a program: with any Host, Origin, and cookie. */
export function sent(
  url: string,
  of: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Told> {
  const { body = "", ...more } = of;
  return new Promise((resolve, reject) => {
    const req = request(url, { method: "POST", agent: false, ...more }, (res) => {
      let text = "";
      res.setEncoding("utf8").on("data", (part: string) => (text += part));
      res.on("end", () => resolve({ status: res.statusCode ?? 0, text, headers: res.headers }));
    });
    req.on("error", reject);
    req.end(body);
  });
}

const JSON_TYPE = { "content-type": "application/json" };
const PAGE = { "x-tollgate-console": "1" };

/** The cookie of a signed-in browser. */
export async function cookieOf(context: BrowserContext): Promise<string> {
  const [cookie] = await context.cookies();
  return `${cookie!.name}=${cookie!.value}`;
}

/** A page of another site, with the victim signed in in the same browser. */
async function elsewhere(context: BrowserContext, html: string): Promise<Page> {
  const page = await context.newPage();
  await page.route("http://evil.example/**", (route) =>
    route.fulfill({ contentType: "text/html", body: html }),
  );
  await page.goto("http://evil.example/");
  return page;
}

const keysOf = async ({ gateway }: Stage): Promise<number> =>
  ((await gateway.ask("keys.list")) as { keys: readonly object[] }).keys.length;

/** Forms and scripts of another site that use the session. */
export async function forgery(stage: Stage, context: BrowserContext, wrong: Wrong): Promise<void> {
  const { origin } = new URL(stage.console);
  const target = `${origin}/admin/v1/keys.create`;
  const before = await keysOf(stage);
  const form = `<form method="post" enctype="text/plain" action="${target}"><input name='{"name":"forged","x":"' value='"}'></form><script>document.forms[0].submit()</script>`;
  // A form submission leaves the other site, so scripts are tested on a separate page.
  const led = await elsewhere(context, form);
  await led.waitForLoadState("networkidle").catch(() => {});
  await led.close();
  const page = await elsewhere(context, "<p>Another site</p>");
  for (const init of [
    { method: "POST", credentials: "include", mode: "no-cors", body: '{"name":"forged"}' },
    { method: "POST", credentials: "include", headers: { ...JSON_TYPE, ...PAGE }, body: "{}" },
  ]) {
    await page
      .evaluate(
        ([url, of]) =>
          fetch(url as string, of as RequestInit).then(
            () => {},
            () => {},
          ),
        [target, init] as const,
      )
      .catch(() => {});
  }
  await page.close();
  const cookie = await cookieOf(context);
  const forged: readonly Record<string, string>[] = [
    { ...JSON_TYPE, cookie },
    { ...JSON_TYPE, ...PAGE, cookie },
    { ...JSON_TYPE, ...PAGE, cookie, origin: "http://evil.example" },
    { ...JSON_TYPE, ...PAGE, cookie, origin: "null" },
    { ...JSON_TYPE, ...PAGE, cookie, origin: `${origin}.evil.example` },
    { ...JSON_TYPE, ...PAGE, cookie, origin, "sec-fetch-site": "cross-site" },
    { ...JSON_TYPE, cookie, origin },
    { "content-type": "text/plain", ...PAGE, cookie, origin },
  ];
  for (const headers of forged) {
    const { status } = await sent(target, { headers, body: '{"name":"forged"}' });
    if (status < 400) wrong.push(`forged: ${JSON.stringify(headers)} was taken`);
  }
  const read = await sent(`${origin}/admin/v1/keys.create?name=forged`, {
    method: "GET",
    headers: { cookie, ...PAGE, origin },
  });
  if (read.status < 400) wrong.push("forged: a GET has made a key");
  if ((await keysOf(stage)) !== before) wrong.push("forged: there is a key more");
}

/** In a frame of another page, or of its own page. */
export async function framed(stage: Stage, context: BrowserContext, wrong: Wrong): Promise<void> {
  const page = await elsewhere(context, `<iframe src="${stage.console}/keys"></iframe>`);
  await page.waitForTimeout(700);
  const inside = page.frames().find((frame) => frame.url().startsWith(stage.console));
  const shows = await inside?.evaluate("document.body?.innerText.length ?? 0").catch(() => 0);
  if (shows) wrong.push("framed: the console is shown in another page");
  await page.close();
}

/** A session that the attacker chose, and links that are used twice. */
export async function fixation(stage: Stage, browser: Browser, wrong: Wrong): Promise<void> {
  const { origin } = new URL(stage.console);
  const context = await browser.newContext();
  const chosen = "A".repeat(43);
  await context.addCookies([{ name: "tollgate", value: chosen, url: origin }]);
  await stage.enter(context);
  const after = await cookieOf(context);
  if (after.includes(chosen)) wrong.push("fixation: the session is the one that was brought");
  const own = { ...JSON_TYPE, ...PAGE, origin };
  const { code } = (await stage.gateway.ask("console")) as { code: string };
  const login = (cookie = "") =>
    sent(`${origin}/admin/v1/session`, {
      headers: { ...own, cookie },
      body: JSON.stringify({ code }),
    });
  const first = await login(after);
  const set = String(first.headers["set-cookie"]);
  for (const part of ["HttpOnly", "SameSite=Strict", "Path=/"])
    if (!set.includes(part)) wrong.push(`fixation: the cookie has no ${part}`);
  if (first.text.includes(set.split(/[=;]/)[1]!)) wrong.push("fixation: the answer says the word");
  if ((await login()).status < 400) wrong.push("fixation: a word was taken twice");
  const asked = (cookie: string) =>
    sent(`${origin}/admin/v1/status`, { headers: { ...own, cookie }, body: "{}" });
  if ((await asked(after)).status < 400)
    wrong.push("fixation: the session before a login lives on");
  const now = set.split(";")[0]!;
  if ((await asked(now)).status !== 200) wrong.push("fixation: the new session is none");
  if ((await asked(`${now}; ${now.replace("=", "=x")}`)).status < 400)
    wrong.push("fixation: of two cookies one was chosen");
  await sent(`${origin}/admin/v1/session`, { method: "DELETE", headers: { ...own, cookie: now } });
  if ((await asked(now)).status < 400) wrong.push("fixation: a session lives on when it was ended");
  await context.close();
}

/** A name of the attacker that resolves to this machine, and line breaks in headers. */
export async function strangeHosts(stage: Stage, wrong: Wrong): Promise<void> {
  const { origin } = new URL(stage.console);
  for (const host of [
    "evil.example",
    "evil.example:80",
    "localhost.evil.example",
    "[::ffff:1.2.3.4].x",
  ])
    for (const path of ["/console", "/admin/v1/session", "/admin/v1/status"]) {
      const { status } = await sent(`${origin}${path}`, { method: "GET", headers: { host } });
      if (status < 400) wrong.push(`rebound: ${path} answers to the Host ${host}`);
    }
  for (const path of [
    "/console/%0d%0aset-cookie:%20a=b",
    "/console?x=%0d%0aset-cookie:a=b",
    "/admin/v1/%0d%0aset-cookie:%20a=b",
    "//evil.example/%2e%2e",
  ]) {
    const { headers } = await sent(`${origin}${path}`, { method: "GET" });
    if (headers["set-cookie"] || headers["a"] || String(headers["location"] ?? "").includes("evil"))
      wrong.push(`injected: ${path} has set a header`);
  }
}

/** Many passwords from one address. This runs last, because it locks the address out. */
export async function guessing(stage: Stage, wrong: Wrong): Promise<void> {
  const { origin } = new URL(stage.console);
  const statuses: number[] = [];
  for (let i = 0; i < 14; i++) {
    const body = JSON.stringify({ token: `ta_${String(i).padStart(40, "x")}` });
    const headers = { ...JSON_TYPE, ...PAGE, origin };
    statuses.push((await sent(`${origin}/admin/v1/session`, { headers, body })).status);
  }
  // Earlier wrong ones count too.
  const looked = statuses.filter((status) => status === 401).length;
  if (looked > 10 || statuses.slice(10).some((status) => status !== 429))
    wrong.push(`guessed: ${statuses.join(", ")}`);
  const { code } = (await stage.gateway.ask("console")) as { code: string };
  const headers = { ...JSON_TYPE, ...PAGE, origin };
  const right = await sent(`${origin}/admin/v1/session`, {
    headers,
    body: JSON.stringify({ code }),
  });
  if (right.status !== 429) wrong.push("guessed: guessing goes on after ten wrong words");
}

/** Names that contain markup or code. */
export const PAYLOADS = [
  "<script>xss()</script>",
  "<img src=x onerror=xss()>",
  "<svg onload=xss()>",
  "<svg><script>xss()</script></svg>",
  '"><script>xss()</script>',
  "'><img src=x onerror=xss()>",
  "</title><script>xss()</script>",
  "</textarea><script>xss()</script>",
  "</style><script>xss()</script>",
  "<iframe srcdoc='<script>parent.xss()</script>'>",
  "<a href=javascript:xss()>x</a>",
  "javascript:xss()",
  "data:text/html,<script>xss()</script>",
  "<body onload=xss()>",
  "<details open ontoggle=xss()>",
  "<input autofocus onfocus=xss()>",
  "<video><source onerror=xss()></video>",
  "<math><mtext><script>xss()</script></mtext></math>",
  "<object data=javascript:xss()>",
  "<embed src=javascript:xss()>",
  "<form action=javascript:xss()><button>x</button></form>",
  "<base href=http://evil.example/>",
  "<meta http-equiv=refresh content=0;url=http://evil.example/>",
  "<link rel=stylesheet href=http://evil.example/x.css>",
  "${xss()}",
  "{{constructor.constructor('xss()')()}}",
  "`;xss();`",
  "\\u003cscript\\u003exss()\\u003c/script\\u003e",
  "&lt;script&gt;xss()&lt;/script&gt;",
  "%3Cscript%3Exss()%3C/script%3E",
  "<scr<script>ipt>xss()</script>",
  "<IMG SRC=`javascript:xss()`>",
  '<img src="x` `<script>xss()</script>"` `>',
  "<style>@import 'http://evil.example/x.css';</style>",
  "<x onclick=xss() tabindex=1 autofocus onfocus=xss()>",
  "__proto__",
  "constructor",
  "\u202e<script>xss()</script>",
  "<!--><script>xss()</script>-->",
  "]]><script>xss()</script>",
] as const;

/**
 * Names of keys, labels, and models, client IDs, and error texts, on every page that shows them.
 */
export async function written(
  stage: Stage,
  context: BrowserContext,
  views: readonly { readonly address: string }[],
  wrong: Wrong,
  /** How many payloads are also written into addresses of pages. */
  inAddresses = 12,
): Promise<number> {
  const { gateway } = stage;
  const said = { messages: [{ role: "user", content: "Hello" }] };
  for (const [i, payload] of PAYLOADS.entries()) {
    // Names with control characters are rejected. A model's name is the client's text.
    const name = payload.replaceAll(/\p{C}/gu, "");
    const { secret } = (await gateway.ask("keys.create", {
      name,
      labels: { team: name, [`label${i}`]: name },
      models: ["*"],
    })) as { secret: string };
    for (const model of ["acme/echo", payload.replaceAll(/\s/g, "")])
      await fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { ...JSON_TYPE, authorization: `Bearer ${secret}` },
        body: JSON.stringify({ model, ...said }),
      }).then((answer) => answer.arrayBuffer());
  }
  const page = await context.newPage();
  const found = complaints(page);
  const asked: string[] = [];
  page.on("request", (one) => {
    if (!one.url().startsWith(new URL(stage.console).origin) && !/^(data|blob):/.test(one.url()))
      asked.push(one.url());
  });
  await page.exposeFunction("xss", () => wrong.push("written: a name was run"));
  for (const address of [
    ...views.map((view) => view.address),
    "/usage?by=label",
    "/usage?by=key",
    "/requests?failed=yes",
    ...PAYLOADS.slice(0, inAddresses).flatMap((payload) => [
      `/keys?q=${encodeURIComponent(payload)}`,
      `/models?model=${encodeURIComponent(payload)}`,
      `/routing?model=${encodeURIComponent(payload)}`,
    ]),
  ]) {
    await page.goto(`${stage.console}${address}`);
    await page.waitForLoadState("networkidle", { timeout: 800 }).catch(() => {});
  }
  wrong.push(...asked.map((url) => `written: ${url} was asked for`));
  // A rejected command is a line in the browser's console too: only scripts and the policy count.
  const policy = found.filter((line) => !/Failed to load resource/.test(line));
  wrong.push(...policy.map((line) => `written: ${line}`));
  await page.close();
  return PAYLOADS.length;
}
