// The list of models in Google's format, in pages.
import { fail, type JsonObject, type ListedModel } from "tollgate/plugin";

const DEFAULT_PAGE_SIZE = 50;
const MAX_PAGE_SIZE = 1_000;

/** Methods that models of each operation support. */
const METHODS: { readonly [operation: string]: readonly string[] } = {
  chat: ["generateContent", "countTokens"],
  embedding: ["embedContent", "batchEmbedContents"],
};

export function toGeminiModel(model: ListedModel): JsonObject {
  const { id, limits = {}, can } = model;
  return {
    name: `models/${id}`,
    baseModelId: id,
    version: model.released ?? "",
    displayName: model.name ?? id,
    inputTokenLimit: limits.context ?? limits.input,
    outputTokenLimit: limits.output,
    supportedGenerationMethods: METHODS[model.operation] ?? [],
    ...(can?.reasoning !== undefined && { thinking: can.reasoning }),
  };
}

/** Creates a page. The page token is the last model of the previous page. */
export function createGeminiPage(
  models: readonly ListedModel[],
  query: URLSearchParams,
): JsonObject {
  const size = sizeOf(query.get("pageSize"));
  const token = query.get("pageToken");
  const before = token ? models.findIndex(({ id }) => id === token) : -1;
  if (token && before < 0) fail("invalid", "Invalid pageToken.", { param: "pageToken" });
  const page = models.slice(before + 1, before + 1 + size);
  const isLast = before + 1 + size >= models.length;
  return {
    models: page.map(toGeminiModel),
    ...(!isLast && { nextPageToken: page.at(-1)!.id }),
  };
}

function sizeOf(value: string | null): number {
  if (value === null) return DEFAULT_PAGE_SIZE;
  const size = /^\d{1,6}$/.test(value) ? Number(value) : -1;
  if (size < 0) fail("invalid", "pageSize must be a number.", { param: "pageSize" });
  return size === 0 ? DEFAULT_PAGE_SIZE : Math.min(size, MAX_PAGE_SIZE);
}
