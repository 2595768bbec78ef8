// Frontend for GET /v1/models: lists the models that the key may use. One format serves the SDKs of
// OpenAI and Anthropic, and another one Google's.
import { defineFrontend, type RequestHead, type ListedModel } from "tollgate/plugin";
import { gemini } from "tollgate/protocols/gemini";
import { images } from "tollgate/protocols/images";
import { messages } from "tollgate/protocols/messages";
import { toGeminiModel, createGeminiPage } from "./models/gemini-list.ts";
import { createListPage } from "./models/list-page.ts";
import { toModelEntry } from "./models/model-entry.ts";
import { findModel, readModelFilter } from "./models/model-filter.ts";
import { versionedPaths, azurePaths, googlePaths } from "./route-paths.ts";
import { acceptOption, extractCredential } from "./client-credential.ts";

/** Encoders of errors. All OpenAI-like protocols use the same format. */
const anthropic = messages().server!;
const openai = images().server!;
const google = gemini().server!;
const isMessagesClient = (x: RequestHead) => x.headers["anthropic-version"] !== undefined;
/**
 * Google's SDKs identify themselves. Its other clients are recognized by where they send the key,
 * which no other clients use.
 */
const isGeminiClient = (x: RequestHead) =>
  x.headers["x-goog-api-client"] !== undefined ||
  x.credentialSources.some((place) => place === "x-goog-api-key" || place === "?key");
const errorEncoderFor = (x: RequestHead) =>
  isGeminiClient(x) ? google : isMessagesClient(x) ? anthropic : openai;

export default defineFrontend({
  api: 1,
  name: "models",
  summary: "List the models that a key may use",
  stability: "beta",
  options: {
    type: "object",
    additionalProperties: false,
    properties: { accept: acceptOption("bearer", "x-api-key", "api-key", "x-goog-api-key", "key") },
  },
  setup({ accept: schemes }, ctx) {
    const listed = (x: RequestHead): readonly ListedModel[] => {
      const { operation, provider, privacy } = readModelFilter(x, ctx.catalog.operations());
      const all = ctx.catalog.list({ identity: x.identity, privacy, operation });
      return provider === undefined ? all : all.filter((model) => model.provider === provider);
    };
    const rowed = (model: ListedModel) =>
      toModelEntry(model, ctx.catalog.operations().get(model.operation));
    return {
      extractCredential: (headers, query) => extractCredential(headers, schemes, query),
      encodeFault: (fault, x) => errorEncoderFor(x).encodeFault(fault, { id: x.id }),
      routes: [
        {
          method: "GET",
          path: [...versionedPaths("/models"), ...azurePaths("/models"), ...googlePaths("/models")],
          handle: (x) => ({
            status: 200,
            body: isGeminiClient(x)
              ? createGeminiPage(listed(x), x.query)
              : createListPage(listed(x).map(rowed), x.query, isMessagesClient(x)),
          }),
        },
        {
          method: "GET",
          path: [
            ...versionedPaths("/models/**:id"),
            ...azurePaths("/models/**:id"),
            ...googlePaths("/models/**:id"),
          ],
          handle: (x) => {
            const model = findModel(listed(x), x.params["id"] ?? "");
            return { status: 200, body: isGeminiClient(x) ? toGeminiModel(model) : rowed(model) };
          },
        },
      ],
    };
  },
});
