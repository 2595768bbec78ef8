import { fail } from "../../model/error.ts";
import { nameOf } from "./client/request.ts";

/**
 * Returns the path of a model. The client chose the name, so the path must not lead to anything
 * except a model.
 */
export function modelPath(model: string): string {
  const steps = nameOf(model).split("/");
  if (steps.some((step) => step === "" || step === "." || step === ".."))
    fail("not_found", `There is no model ${model}.`, { param: "model", code: "model_not_found" });
  return steps.map((step) => encodeURIComponent(step)).join("/");
}
