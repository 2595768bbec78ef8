// Google's own SDK for Gemini validates the fake: embeddings by `predict`, and Gemini streaming,
// non-streaming, and token counts. It is no dependency, so this runs if it is installed, or on a
// test machine (CI, or CLIENTS=1), which installs it.
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { think } from "tollgate/testing";
import { installed, isInstalled, type Package } from "../clients/install.ts";
import { SDKS } from "../clients/google/sdks.ts";
import { fakeGoogle, throttled, vectorFor, type FakeGoogle } from "./google-fake.ts";

const GENAI: Package = SDKS.find(({ name }) => name === "genai")!.package;
const GEMINI = "gemini-3-pro-preview";
const { CI, CLIENTS } = process.env;

// The package is not installed during type checks.
type Any = any; // oxlint-disable-line typescript/no-explicit-any

describe.skipIf(!isInstalled(GENAI) && CI === undefined && CLIENTS === undefined)(
  `${GENAI.name} ${GENAI.version}`,
  () => {
    let fake: FakeGoogle;
    let models: Any;
    beforeAll(async () => {
      const { GoogleGenAI } = (await import(await installed(GENAI))) as Any;
      fake = await fakeGoogle();
      const authClient = {
        getRequestHeaders: async () => new Headers({ authorization: "Bearer judge" }),
      };
      models = new GoogleGenAI({
        vertexai: true,
        project: "my-project",
        location: "europe-west4",
        googleAuthOptions: { authClient },
        httpOptions: { baseUrl: fake.url },
      }).models;
    }, 300_000);
    afterAll(() => fake[Symbol.asyncDispose]());
    beforeEach(() => {
      fake.up.reset();
      fake.good.add("judge");
      fake.says = think("Hm.", "c2ln")
        .say("Grüße 🌍")
        .call("go", { to: "Rome" }, "call_x")
        .usage({ input: 30, cache_read: 5, output: 12, reasoning: 3 });
    });

    it("reads embeddings of several texts from predict, each with its count", async () => {
      const contents = ["two words", "one", "and three words"];
      const { embeddings } = await models.embedContent({
        model: "text-embedding-005",
        contents,
        config: { outputDimensionality: 4, taskType: "RETRIEVAL_QUERY" },
      });
      expect(embeddings).toEqual(
        contents.map((text) => ({
          values: vectorFor(text, 4),
          statistics: { tokenCount: text.split(" ").length, truncated: false },
        })),
      );
      const { path, json } = fake.up.requests[0]!;
      expect(path).toBe(
        "/v1beta1/projects/my-project/locations/europe-west4/publishers/google/models/text-embedding-005:predict",
      );
      expect(json()).toEqual({
        instances: contents.map((content) => ({ content, task_type: "RETRIEVAL_QUERY" })),
        parameters: { outputDimensionality: 4 },
      });
    });

    it("accepts one text for Gemini's own model, and rejects more", async () => {
      const ask = (contents: string[]) =>
        models.embedContent({ model: "gemini-embedding-001", contents });
      expect((await ask(["one text"])).embeddings).toHaveLength(1);
      await expect(ask(["a", "b"])).rejects.toMatchObject({ status: 400 });
    });

    it("reads Gemini responses and counts, streaming and non-streaming", async () => {
      // It warns of data that its short form of a response omits.
      vi.spyOn(console, "warn").mockImplementation(() => {});
      const asked = { model: GEMINI, contents: "Hello" };
      const whole = await models.generateContent(asked);
      expect([whole.text, whole.functionCalls[0].name]).toEqual(["Grüße 🌍", "go"]);
      expect(whole.usageMetadata).toMatchObject({
        promptTokenCount: 35,
        cachedContentTokenCount: 5,
        candidatesTokenCount: 9,
        thoughtsTokenCount: 3,
      });
      let text = "";
      for await (const chunk of await models.generateContentStream(asked)) text += chunk.text ?? "";
      expect(text).toBe("Grüße 🌍");
      expect((await models.countTokens(asked)).totalTokens).toBe(7);
    });

    it("recognizes throttling and an expired token", async () => {
      const ask = () => models.generateContent({ model: GEMINI, contents: "Hello" });
      fake.next.push(throttled());
      await expect(ask()).rejects.toMatchObject({ status: 429 });
      fake.good.clear();
      await expect(ask()).rejects.toMatchObject({ status: 401 });
    });
  },
);
