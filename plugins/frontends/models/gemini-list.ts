// The list of models as Google's clients read it, a page at a time.
import { fail, type JsonObject, type ListedModel } from "tollgate/plugin";

const DEFAULT_PAGE_SIZE = 50;
const MAX_PAGE_SIZE = 1_000;

/** What may be asked of a model of each operation. */
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

/** A page is told by the model that the last one ended with. */
export function createGeminiPage(
  models: readonly ListedModel[],
  query: URLSearchParams,
): JsonObject {
  const size = sizeOf(query.get("pageSize"));
  const token = query.get("pageToken");
  const before = token ? models.findIndex(({ id }) => id === token) : -1;
  if (token && before < 0)
    fail("invalid", "pageToken names no page of this list.", { param: "pageToken" });
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
  if (size < 0) fail("invalid", "pageSize is a number.", { param: "pageSize" });
  return size === 0 ? DEFAULT_PAGE_SIZE : Math.min(size, MAX_PAGE_SIZE);
}
