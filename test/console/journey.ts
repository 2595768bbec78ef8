// An operator's day: creates a key, spends with it, sees the usage, finds the request and its
// reason, sets a budget, is rejected, rotates the secret, revokes the key. With mouse and keyboard,
// in a real browser.
import type { BrowserContext, Page } from "playwright-core";
import { complaints } from "./browser.ts";
import type { Wrong } from "./attacks.ts";
import type { Stage } from "./stage.ts";

const PROMPT = "a word of the journey that is shown nowhere";

interface Asked {
  readonly status: number;
  readonly id: string;
}

export async function ask({ gateway }: Stage, secret: string): Promise<Asked> {
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "acme/echo",
      messages: [{ role: "user", content: PROMPT }],
    }),
  });
  await answer.arrayBuffer();
  return { status: answer.status, id: answer.headers.get("x-request-id")! };
}

export async function journey(stage: Stage, context: BrowserContext, wrong: Wrong): Promise<void> {
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const found = complaints(page);
  const bodies = responses(page);
  try {
    const secret = await makes(stage, page);
    const spent = await spends(stage, page, secret, wrong);
    await findsIt(stage, page, spent, wrong);
    await isRefused(stage, page, secret, wrong);
    const second = await rotates(stage, page, secret, wrong);
    await ends(stage, page, second, wrong);
    for (const [command, text] of await bodies()) {
      if (text.includes(PROMPT)) wrong.push(`journey: ${command} has a prompt`);
      const hands = ["keys.create", "keys.rotate"].includes(command);
      for (const one of [secret, second])
        if (!hands && text.includes(one)) wrong.push(`journey: ${command} has a secret`);
    }
    wrong.push(...found.map((line) => `journey: ${line}`));
  } catch (error) {
    wrong.push(`journey: ${(error as Error).message.split("\n").slice(0, 3).join(" ")}`);
  } finally {
    await page.close();
  }
}

/** The gateway's responses to the page, by command. */
function responses(page: Page): () => Promise<readonly (readonly [string, string])[]> {
  const heard: Promise<readonly [string, string]>[] = [];
  page.on("response", (answer) => {
    const [, command] = /\/admin\/v1\/([^?]+)/.exec(answer.url()) ?? [];
    if (command === undefined) return;
    heard.push(
      answer.text().then(
        (text) => [command, text] as const,
        () => [command, ""] as const,
      ),
    );
  });
  return () => Promise.all(heard);
}

const secretIn = async (page: Page): Promise<string> =>
  (await page.locator(".secret").first().innerText()).trim();

async function makes({ console }: Stage, page: Page): Promise<string> {
  await page.goto(`${console}/keys`);
  await page.getByRole("button", { name: "New key" }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("journey");
  await dialog.getByLabel("Limits and budgets").fill("requests=5/day");
  await dialog.getByRole("button", { name: "Create the key" }).click();
  await dialog.getByText("This secret is shown only once").waitFor();
  const secret = await secretIn(page);
  for (const client of [
    "Claude Code",
    "Codex",
    "OpenAI, Python",
    "Anthropic",
    "OpenAI, JS",
    "curl",
  ])
    await dialog.getByRole("button", { name: client }).click();
  await dialog.getByRole("button", { name: "Done" }).click();
  return secret;
}

async function opens({ console }: Stage, page: Page): Promise<void> {
  await page.goto(`${console}/keys?q=journey`);
  await page.getByRole("link", { name: "journey" }).first().click();
  await page.getByRole("dialog").getByText("Limits and budgets").waitFor();
}

async function spends(stage: Stage, page: Page, secret: string, wrong: Wrong): Promise<string> {
  await page.goto(`${stage.console}/usage?by=key&range=1h`);
  const first = await ask(stage, secret);
  const second = await ask(stage, secret);
  if (first.status !== 200 || second.status !== 200) wrong.push("journey: a new key is refused");
  await page.reload();
  await page
    .getByRole("rowheader", { name: "journey" })
    .first()
    .waitFor()
    .catch(() => wrong.push("journey: what was spent is in no row of the report"));
  await opens(stage, page);
  await page
    .getByText("2 of 5")
    .first()
    .waitFor()
    .catch(() => wrong.push("journey: what was used is not counted"));
  return second.id;
}

async function findsIt({ console }: Stage, page: Page, id: string, wrong: Wrong): Promise<void> {
  await page.goto(`${console}/requests/${id}`);
  await page
    .getByText("acme/echo")
    .first()
    .waitFor()
    .catch(() => wrong.push("journey: the request's story is not told"));
  await page.goto(`${console}/routing?model=fast`);
  await page
    .getByText("is called first")
    .waitFor()
    .catch(() => wrong.push("journey: it is not said why"));
}

async function isRefused(stage: Stage, page: Page, secret: string, wrong: Wrong): Promise<void> {
  await opens(stage, page);
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Change" }).click();
  await dialog.getByLabel("Limits and budgets").fill("requests=2/day");
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.getByText("Its secret is unchanged").waitFor();
  const { status } = await ask(stage, secret);
  if (status !== 429 && status !== 402) wrong.push(`journey: over its budget it gets ${status}`);
  await opens(stage, page);
  const meter = dialog.getByRole("meter").first();
  if ((await meter.getAttribute("aria-valuenow")) !== "100")
    wrong.push("journey: a budget that is used up does not look like it");
  await page.goto(`${stage.console}/requests?status=refused`);
  await page
    .getByText("429")
    .first()
    .waitFor()
    .catch(() => wrong.push("journey: the refusal is not to be found"));
}

async function rotates(stage: Stage, page: Page, secret: string, wrong: Wrong): Promise<string> {
  await opens(stage, page);
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Change" }).click();
  await dialog.getByLabel("Limits and budgets").fill("requests=9/day");
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.getByText("Its secret is unchanged").first().waitFor();
  await dialog.getByLabel("The old secret").selectOption("0");
  await dialog.getByRole("button", { name: "Rotate…" }).click();
  await dialog.getByRole("button", { name: "Yes, rotate journey" }).click();
  await dialog.getByText("This secret is shown only once").waitFor();
  const second = await secretIn(page);
  const [old, now] = [await ask(stage, secret), await ask(stage, second)];
  if (old.status !== 401) wrong.push(`journey: the old secret gets ${old.status}`);
  if (now.status !== 200) wrong.push(`journey: the new secret gets ${now.status}`);
  return second;
}

async function ends(stage: Stage, page: Page, secret: string, wrong: Wrong): Promise<void> {
  await opens(stage, page);
  const dialog = page.getByRole("dialog");
  const end = dialog.getByRole("button", { name: "Revoke this key" });
  await end.focus();
  await page.keyboard.press("Enter");
  await dialog.getByRole("button", { name: "Yes, revoke journey" }).click();
  await page.getByText("journey was revoked").waitFor();
  const { status } = await ask(stage, secret);
  if (status !== 401) wrong.push(`journey: an ended key gets ${status}`);
  await page.keyboard.press("Escape");
}
