import {
  fail,
  type RequestHead,
  type Operation,
  type ListedModel,
  type Privacy,
  type OperationSpec,
  type JsonObject,
} from "tollgate/plugin";

export interface ModelFilter {
  operation: Operation | undefined;
  provider: string | undefined;
  privacy: Privacy;
}

const PRIVACY_LEVELS: readonly Privacy[] = ["off", "required", "strict"];
/** Values of the Service-ZDR header. */
const PRIVACY_BY_VALUE: Readonly<Record<string, Privacy>> = {
  "": "required",
  required: "required",
  true: "required",
  "1": "required",
  strict: "strict",
  off: "off",
  false: "off",
  "0": "off",
};

/**
 * Reads ?operation=, ?provider=, and ?zdr=. A filter only narrows the list that the key and its
 * privacy permit.
 */
export function readModelFilter(
  x: RequestHead,
  operations: ReadonlyMap<string, OperationSpec>,
): ModelFilter {
  const operation = x.query.get("operation") ?? undefined;
  if (operation !== undefined && !operations.has(operation))
    fail("invalid", `operation must be one of: ${[...operations.keys()].join(", ")}.`, {
      param: "operation",
    });
  const zdr = x.query.get("zdr")?.toLowerCase();
  const requestedPrivacy: Privacy =
    zdr === undefined
      ? "off"
      : Object.hasOwn(PRIVACY_BY_VALUE, zdr)
        ? PRIVACY_BY_VALUE[zdr]!
        : fail("invalid", "zdr must be required, strict, or off.", { param: "zdr" });
  const privacy =
    PRIVACY_LEVELS.indexOf(requestedPrivacy) > PRIVACY_LEVELS.indexOf(x.privacy)
      ? requestedPrivacy
      : x.privacy;
  return {
    operation: operation as Operation | undefined,
    provider: x.query.get("provider") ?? undefined,
    privacy,
  };
}

/** Finds a model. A model that the key may not use is reported as not found. */
export function findModel(models: readonly ListedModel[], id: string): ListedModel {
  const clear = unescaped(id);
  return (
    models.find((model) => model.id === id) ??
    models.find((model) => model.id === clear) ??
    fail(
      "not_found",
      `Model ${clear} not found, or this key may not use it. GET /v1/models lists the available models.`,
      {
        code: "model_not_found",
        param: "model",
      },
    )
  );
}

/** Some clients escape the slash in an ID, and some clients escape it twice. */
function unescaped(id: string): string {
  try {
    return decodeURIComponent(id);
  } catch {
    return id;
  }
}

// The list of models in Google's format, in pages.

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
    description: model.description,
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
