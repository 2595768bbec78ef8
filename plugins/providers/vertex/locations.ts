// Where Vertex listens, and where each model stands there.
import { fail } from "tollgate/plugin";

/** The host of a location. Continents and the globe have hosts of their own. */
export function hostOf(location: string): string {
  if (location === "global") return "https://aiplatform.googleapis.com";
  if (location === "us" || location === "eu")
    return `https://aiplatform.${location}.rep.googleapis.com`;
  return `https://${location}-aiplatform.googleapis.com`;
}

/** A model of a publisher: its name is one step, whatever is in it. */
export function modelUrl(publisher: string, model: string, verb: string): string {
  const name = bareName(model);
  if (name === "" || name === "." || name === "..")
    fail("not_found", `There is no model ${model}.`, { param: "model", code: "model_not_found" });
  return `/publishers/${publisher}/models/${encodeURIComponent(name).replaceAll("%40", "@")}:${verb}`;
}

const PUBLISHER_PREFIX = /^publishers\/(?:google|anthropic)\/models\//;
/** "publishers/google/models/x" is x. */
export const bareName = (model: string): string => model.replace(PUBLISHER_PREFIX, "");

export const isClaude = (model: string): boolean => bareName(model).startsWith("claude-");
/** Models of other publishers are named with theirs: "meta/llama-…". */
export const isPartner = (model: string): boolean => bareName(model).includes("/");
/** Models that embed text say it in their names. */
export const isEmbeddingModel = (model: string): boolean =>
  /^(?:text(?:-multilingual)?-embedding-|gemini-embedding-)/.test(bareName(model));
export const isGemini = (model: string): boolean =>
  !isClaude(model) && !isPartner(model) && !isEmbeddingModel(model);
