import { fail } from "../../model/error.ts";
import { nameOf } from "./client/request.ts";

/** Where a model is asked. A client chose the name: it must not lead anywhere but to a model. */
export function modelPath(model: string): string {
  const steps = nameOf(model).split("/");
  if (steps.some((step) => step === "" || step === "." || step === ".."))
    fail("not_found", `There is no model ${model}.`, { param: "model", code: "model_not_found" });
  return steps.map((step) => encodeURIComponent(step)).join("/");
}
