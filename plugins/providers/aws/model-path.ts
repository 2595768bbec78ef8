// Builds the URL path of a model. The name is one encoded segment, because ARNs contain slashes and
// colons.
import { fail } from "tollgate/plugin";

export function modelPath(model: string, verb: string): string {
  if (model === "" || model === "." || model === "..")
    fail("not_found", `Model ${model} not found.`, { param: "model", code: "model_not_found" });
  return `/model/${encodeURIComponent(model)}/${verb}`;
}
