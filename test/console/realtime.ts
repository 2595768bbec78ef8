// The WebSockets page and the Realtime playground in a browser, against a fake provider.
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { axe, overflow } from "./browser.ts";
import { inside, type Journey } from "./journeys.ts";

const MODEL = "voice/gpt-realtime";
/** Opens a conversation. `mode`: the label of the response's type. */
async function connect(page: Page, mode: "Voice" | "Text"): Promise<void> {
  await page.getByRole("button", { name: "Create a key for 1 hour" }).click();
  await page
    .getByRole("group", { name: "Response" })
    .getByRole("button", { name: mode, exact: true })
    .click();
  await page.getByRole("button", { name: "Connect", exact: true }).click();
  await page.getByText("connected", { exact: true }).waitFor();
}

const conversation = (page: Page) => page.getByRole("log", { name: "Conversation" });

async function write(page: Page, text: string): Promise<void> {
  await page.getByLabel("Message").fill(text);
  await page.getByRole("button", { name: "Send" }).click();
}

const looks = async (page: Page, at: string): Promise<void> => {
  assert.deepEqual(await axe(page), [], at);
  assert.deepEqual(await overflow(page), { by: 0, of: [] }, at);
};

const types: Journey = {
  name: "the realtime playground talks by text, and its connection is listed, closed, and billed",
  async run(stage, browser) {
    for (const [colorScheme, width] of [
      ["light", 1280],
      ["dark", 320],
    ] as const)
      await inside(
        stage,
        browser,
        "/realtime",
        async (page, context) => {
          const field = page.getByLabel("Model", { exact: true });
          await page.getByText("1 realtime model to choose from").waitFor();
          assert.equal(await field.inputValue(), MODEL);
          await looks(page, "before the connection");
          await connect(page, "Text");
          await write(page, "Is the gate open at night?");
          const talk = conversation(page);
          await talk.getByText("Is the gate open at night?").waitFor();
          await talk.getByText("Hello there friend").waitFor();
          await talk.getByText(/^\d+ tokens in, 3 tokens out$/).waitFor();
          await page.getByText("← response.done").waitFor();
          await looks(page, "in a conversation");

          const other = await context.newPage();
          await other.goto(`${stage.console}/sockets`);
          const row = other.getByRole("row").filter({ hasText: MODEL });
          await row.getByText("playground").waitFor();
          await row.getByText("idle").waitFor();
          await looks(other, "the list of connections");
          await row.getByRole("button", { name: "Close" }).click();
          await row.getByRole("button", { name: "Yes" }).click();
          await other.getByText("The connection of playground was closed.").waitFor();
          await row.waitFor({ state: "detached" });
          await page.getByRole("alert").getByText("An administrator closed").waitFor();
          await page.getByText("not connected").waitFor();
          await looks(page, "after the end");

          // Its response is a request like any other, with a bill.
          await other.goto(`${stage.console}/requests?model=${MODEL}`);
          await other.getByRole("link", { name: MODEL }).first().click();
          const story = other.getByRole("dialog");
          await story.getByText("Bill of call 1").waitFor();
          await story.getByText("recomputed: same result").waitFor();
          await other.close();
        },
        { colorScheme, viewport: { width, height: 800 } },
      );
  },
};

const speaks: Journey = {
  name: "the realtime playground sends the microphone, plays the response, and stops recording",
  run: (stage, browser) =>
    inside(
      stage,
      browser,
      "/realtime",
      async (page) => {
        await connect(page, "Voice");
        const before = stage.upstream.sockets.at(-1)!;
        await page.getByRole("button", { name: "Use the microphone" }).click();
        await page.getByRole("button", { name: "Stop the microphone" }).waitFor();
        // The browser's fake microphone beeps, and is silent between two beeps.
        const talk = conversation(page);
        await talk.getByText("(speech)").first().waitFor();
        await talk.getByText("Hello there friend").first().waitFor();
        const audio = before.received.map((one) => JSON.parse(one) as { audio?: string });
        assert.ok(audio.some(({ audio: sent = "" }) => /[^A]/.test(sent)));
        await page.getByRole("button", { name: "Stop the microphone" }).click();
        await page.getByRole("button", { name: "Use the microphone" }).waitFor();
        await looks(page, "in a spoken conversation");
        await page.getByRole("button", { name: "Disconnect" }).click();
        await page.getByText("not connected").waitFor();
        assert.equal(await before.closed, 1000);
      },
      { permissions: ["microphone"] },
    ),
};

const WITHOUT_MICROPHONE =
  "Object.defineProperty(navigator, 'mediaDevices', { value: undefined });";

const falls: Journey = {
  name: "without a microphone the realtime playground begins with text, and reports a rejection",
  run: (stage, browser) =>
    inside(stage, browser, "/overview", async (page) => {
      await page.addInitScript(WITHOUT_MICROPHONE);
      await page.goto(`${stage.console}/realtime?model=nobody/nothing`);
      const response = page.getByRole("group", { name: "Response" });
      await response.locator("[aria-pressed=true]").getByText("Text").waitFor();
      await response.getByRole("button", { name: "Voice" }).click();
      await page.getByText("This browser has no microphone for this page.").waitFor();
      await page.getByRole("button", { name: "Create a key for 1 hour" }).click();
      await page.getByRole("button", { name: "Connect", exact: true }).click();
      await page.getByRole("alert").getByText("nobody/nothing").waitFor();
      await page.getByLabel("Model", { exact: true }).fill(MODEL);
      await page.getByRole("button", { name: "Connect", exact: true }).click();
      await page.getByText("connected", { exact: true }).waitFor();
      assert.equal(await page.getByRole("button", { name: /microphone/ }).count(), 0);
      await write(page, "Hello");
      await conversation(page).getByText("Hello there friend").waitFor();
    }),
};

export const REALTIME: readonly Journey[] = [types, speaks, falls];
