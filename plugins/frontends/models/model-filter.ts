import {
  fail,
  type RequestHead,
  type Operation,
  type ListedModel,
  type Privacy,
  type OperationSpec,
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
  const asked: Privacy =
    zdr === undefined
      ? "off"
      : Object.hasOwn(PRIVACY_BY_VALUE, zdr)
        ? PRIVACY_BY_VALUE[zdr]!
        : fail("invalid", "zdr must be required, strict, or off.", { param: "zdr" });
  const privacy =
    PRIVACY_LEVELS.indexOf(asked) > PRIVACY_LEVELS.indexOf(x.privacy) ? asked : x.privacy;
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

/** Some clients escape the slash in an ID, and some escape it twice. */
function unescaped(id: string): string {
  try {
    return decodeURIComponent(id);
  } catch {
    return id;
  }
}
