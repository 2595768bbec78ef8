// Where a model is asked. Its name is one step of the address, whatever is in it: ARNs have slashes and colons.
import { fail } from "tollgate/plugin";

export function modelPath(model: string, verb: string): string {
  if (model === "" || model === "." || model === "..")
    fail("not_found", `There is no model ${model}.`, { param: "model", code: "model_not_found" });
  return `/model/${encodeURIComponent(model)}/${verb}`;
}
