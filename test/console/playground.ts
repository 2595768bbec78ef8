// The playground in a browser: each frontend is called, its response shown, and its raw bytes read.
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { axe, overflow } from "./browser.ts";
import { until } from "../kit/wait.ts";
import { inside, type Journey } from "./journeys.ts";

/** A pixel, as PNG. */
const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const picture = {
  name: "pixel.png",
  mimeType: "image/png",
  buffer: Buffer.from(PIXEL, "base64"),
};

/** Actions on the page, by the names of its elements. */
const on = (page: Page) => ({
  send: page.getByRole("button", { name: "Send" }),
  answer: page.getByRole("region", { name: "Answer", exact: true }).last(),
  wire: page.getByRole("region", { name: "Raw HTTP exchange" }),
  code: page.getByRole("region", { name: "The request in code" }),
  key: () => page.getByRole("button", { name: "Create a key for 1 hour" }).click(),
  through: (name: string) => page.getByLabel("Frontend").selectOption({ label: name }),
  side: (name: string) =>
    page.getByRole("group", { name: "Side" }).getByRole("button", { name }).click(),
  whole: () => page.getByText("Whole", { exact: true }).waitFor(),
});

const TALKS = ["Chat completions", "Messages", "Responses", "Gemini"];

const talks: Journey = {
  name: "the playground talks through each frontend, and its request's story has the bill",
  run: (stage, browser) =>
    inside(stage, browser, "/playground?model=acme/echo", async (page) => {
      const at = on(page);
      await at.key();
      for (const name of TALKS)
        for (const stream of [true, false]) {
          await at.through(name);
          await page.getByRole("checkbox", { name: "Stream" }).setChecked(stream);
          const words = `Said by ${name}, ${stream ? "bit by bit" : "at once"}`;
          await page.getByLabel("Prompt").fill(words);
          await at.send.click();
          await at.answer.getByText(words).waitFor();
          await at.whole();
        }
      await page.getByRole("link", { name: /Details of this request/ }).click();
      const story = page.getByRole("dialog");
      await story.getByText("Bill of call 1").waitFor();
      await story.getByText("recomputed: same result").waitFor();
      assert.equal(await page.getByText("Said by Gemini").count(), 0);
      assert.deepEqual(await axe(page), []);
      await page.keyboard.press("Escape");
      await story.waitFor({ state: "detached" });
    }),
};

const offers: Journey = {
  name: "the playground offers a tool and a picture, and asks for zero data retention, through each frontend",
  run: (stage, browser) =>
    inside(stage, browser, "/playground?model=demo/tools", async (page) => {
      const at = on(page);
      await at.key();
      await page.getByRole("checkbox", { name: "Offer a tool" }).check();
      await page.getByRole("checkbox", { name: "Zero data retention" }).check();
      for (const [name, tool] of [
        ["Chat completions", '"function"'],
        ["Messages", '"input_schema"'],
        ["Responses", '"parameters"'],
        ["Gemini", '"functionDeclarations"'],
      ] as const)
        for (const stream of [true, false]) {
          await at.through(name);
          await page.getByRole("checkbox", { name: "Stream" }).setChecked(stream);
          await at.send.click();
          const calls = page.getByRole("region", { name: "Tool calls" });
          await calls.getByText("toll_of").waitFor();
          await calls.getByText("vehicle").waitFor();
          await at.whole();
          await at.side("Request");
          assert.match(await at.wire.innerText(), new RegExp(tool), name);
          await at.side("Head");
          assert.match(await at.wire.innerText(), /service-zdr: \S/, name);
        }
      assert.match(await at.code.innerText(), /service-zdr: required/i);
      await page.getByRole("checkbox", { name: "Offer a tool" }).uncheck();
      await page.getByLabel("Model", { exact: true }).fill("demo/echo");
      await page.getByLabel("Add an image").setInputFiles(picture);
      await page.getByRole("button", { name: "Remove the image" }).waitFor();
      for (const [name, form] of [
        ["Chat completions", '"image_url"'],
        ["Messages", '"media_type": "image/png"'],
        ["Responses", '"input_image"'],
        ["Gemini", '"mimeType": "image/png"'],
      ] as const) {
        await at.through(name);
        await page.getByLabel("Prompt").fill(`A picture by ${name}`);
        await at.send.click();
        await at.answer.getByText(`A picture by ${name}`).waitFor();
        await at.side("Request");
        const sent = await at.wire.innerText();
        assert.ok(sent.includes(form) && sent.includes(PIXEL.slice(0, 40)), name);
      }
      await page.getByLabel("Model", { exact: true }).fill("acme/echo");
      await page.getByRole("button", { name: "Remove the image" }).click();
      await page.getByText("Add an image").waitFor();
    }),
};

/** Like demo/speech: text in a file's comment, which demo/transcribe reads. */
async function spoken(stage: Parameters<Journey["run"]>[0], words: string): Promise<Buffer> {
  const answer = await fetch(`${stage.gateway.url}/v1/audio/speech`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${stage.secrets[0]}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({
      model: "demo/speech",
      input: words,
      voice: "alloy",
      response_format: "wav",
    }),
  });
  return Buffer.from(await answer.arrayBuffer());
}

/** Duration of the page's audio in the browser, which has therefore read it. */
const PLAYED = `(async () => {
  const sound = document.querySelector("audio");
  if (sound.readyState < 1) await new Promise((done, bad) => {
    sound.addEventListener("loadedmetadata", done);
    sound.addEventListener("error", () => bad(new Error(sound.error.message)));
  });
  return sound.duration;
})()`;

interface Work {
  readonly name: string;
  readonly model: string;
  /** Fills in the frontend's own fields. */
  readonly fill: (page: Page) => Promise<unknown>;
  readonly shown: (page: Page) => Promise<void>;
  /** In the request. */
  readonly sent: RegExp;
  readonly streams?: true;
}

const SAID = "The toll is paid at night";
const worksOf = (sound: Buffer): readonly Work[] => {
  const hears = (page: Page) => on(page).answer.getByText(SAID).waitFor();
  const listen = async (page: Page) => {
    const leave = page.getByRole("button", { name: "Remove the audio file" });
    if ((await leave.count()) === 0) {
      assert.ok(await on(page).send.isDisabled());
      await page
        .getByLabel("Add an audio file")
        .setInputFiles({ name: "night.wav", mimeType: "audio/wav", buffer: sound });
    }
    await leave.waitFor();
  };
  const drawn = (page: Page) => page.getByAltText("Picture 1 of the answer").waitFor();
  return [
    {
      name: "Completions",
      model: "demo/complete",
      streams: true,
      fill: (page) => page.getByLabel("Text to continue").fill("The gate is"),
      shown: async (page) => {
        const words = (await on(page).answer.innerText()).trim().split(/\s+/);
        assert.ok(words.length > 10, `${words.length} words`);
      },
      sent: /"prompt": "The gate is"/,
    },
    {
      name: "Embeddings",
      model: "demo/embed",
      fill: (page) => page.getByLabel("Texts, one per line").fill("a toll\n\na gate"),
      shown: async (page) => {
        const { answer } = on(page);
        await answer.getByText(/^1\. \d+ numbers$/).waitFor();
        await answer.getByText(/^2\. \d+ numbers$/).waitFor();
        const numbers = answer.locator("code");
        assert.equal(await numbers.count(), 2);
        assert.match(await numbers.first().innerText(), /^(-?\d[\d.e-]*, ){6}…$/);
      },
      sent: /"input": \[\s+"a toll",\s+"a gate"\s+\]/,
    },
    {
      name: "Rerank",
      model: "demo/rerank",
      fill: async (page) => {
        await page.getByLabel("Query").fill("what is a toll gate");
        await page.getByLabel("Documents, one a line").fill("cats sleep\na toll gate takes a fee");
      },
      shown: async (page) => {
        const lines = on(page).answer.getByRole("listitem");
        await lines.first().getByText("a toll gate takes a fee").waitFor();
        await lines.nth(1).getByText("cats sleep").waitFor();
      },
      sent: /"documents": \[\s+"cats sleep"/,
    },
    {
      name: "Moderations",
      model: "demo/moderate",
      fill: (page) => page.getByLabel("Text to classify").fill("a story of violence"),
      shown: async (page) => {
        const first = page.getByRole("region", { name: "Result" }).locator("tbody tr").first();
        await first.getByRole("rowheader", { name: "violence" }).waitFor();
        await first.getByText("flagged").waitFor();
      },
      sent: /"input": "a story of violence"/,
    },
    {
      name: "Images",
      model: "demo/image",
      streams: true,
      fill: (page) => page.getByLabel("Description of the image").fill("A gate"),
      shown: drawn,
      sent: /"prompt": "A gate"/,
    },
    {
      name: "Image edits",
      model: "demo/image",
      streams: true,
      fill: async (page) => {
        await page.getByLabel("Change to make").fill("Open the gate");
        const leave = page.getByRole("button", { name: "Remove the image" });
        if ((await leave.count()) === 0) {
          assert.ok(await on(page).send.isDisabled());
          await page.getByLabel("Add an image").setInputFiles(picture);
        }
        await leave.waitFor();
      },
      shown: drawn,
      sent: /image: pixel\.png \(image\/png, \d+ bytes\)/,
    },
    {
      name: "Speech",
      model: "demo/speech",
      fill: (page) => page.getByLabel("Text to speak").fill("Twelve words"),
      shown: async (page) => {
        await page.getByLabel("Audio of the response").waitFor();
        // A twentieth of a second per character.
        assert.equal(await page.evaluate(PLAYED), 12 / 20);
        await on(page).side("Answer");
        assert.match(await on(page).wire.innerText(), /^audio\/wav, \d{4,} bytes/);
      },
      sent: /"response_format": "wav"/,
    },
    {
      name: "Transcriptions",
      model: "demo/transcribe",
      streams: true,
      fill: listen,
      shown: hears,
      sent: /file: night\.wav \(audio\/wav, \d+ bytes\)/,
    },
    {
      name: "Translations into English",
      model: "demo/transcribe",
      fill: listen,
      shown: hears,
      sent: /model: demo\/transcribe/,
    },
  ];
};

const CODE = [
  ["curl", /^curl 'http/],
  ["Python", /^import os\n/],
  ["JavaScript", /^import .*"(openai|cohere-ai)";/],
] as const;

const works: Journey = {
  name: "the playground asks what does not talk: completions, vectors, ranks, judgements, pictures, edits, speech, transcripts",
  async run(stage, browser) {
    const sound = await spoken(stage, SAID);
    for (const colorScheme of ["light", "dark"] as const)
      await inside(
        stage,
        browser,
        "/playground",
        async (page) => {
          const at = on(page);
          await at.key();
          await page.getByRole("checkbox", { name: "Zero data retention" }).check();
          for (const { name, model, fill, shown, sent, streams } of worksOf(sound)) {
            await at.through(name);
            const field = page.getByLabel("Model", { exact: true });
            await until(
              async () => (await field.inputValue()) === model,
              () => `${name} begins with ${model}`,
            );
            await fill(page);
            const stream = page.getByRole("checkbox", { name: "Stream" });
            assert.equal(await stream.count(), streams ? 1 : 0, name);
            for (const to of streams ? [true, false] : [false]) {
              if (streams) await stream.setChecked(to);
              await at.send.click();
              await at.whole();
              await shown(page);
              await at.side("Request");
              assert.match(await at.wire.innerText(), sent, name);
              await at.side("Head");
              assert.match(await at.wire.innerText(), /^200\n[^]*service-zdr: \S/, name);
            }
            for (const [language, begins] of CODE) {
              await page
                .getByRole("group", { name: "Language" })
                .getByRole("button", { name: language })
                .click();
              assert.match(await at.code.innerText(), begins, name);
            }
            assert.deepEqual(await axe(page), [], name);
            assert.deepEqual(await overflow(page), { by: 0, of: [] }, name);
          }
        },
        colorScheme === "light"
          ? { colorScheme, viewport: { width: 1280, height: 800 } }
          : { colorScheme, viewport: { width: 320, height: 720 } },
      );
  },
};

export const PLAYGROUND: readonly Journey[] = [talks, offers, works];
