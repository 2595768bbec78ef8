import type { ChatRequest, Output, Reasoning } from "../../../model/request.ts";
import type { Body, Json, JsonObject, Opt } from "../../../model/values.ts";
import { flag, list, number, object, present, some, text } from "../../json.ts";
import { strangersIn, unknownIn } from "../../strangers.ts";
import { KNOWN_INSIDE } from "../known.ts";
import { inOneSpelling, TOP } from "../one-spelling.ts";
import { BESIDE, came, ID, PASSED } from "../words.ts";
import { instructionsOf, turnsOf } from "./contents.ts";
import { schemaOf } from "./schema.ts";
import { choiceOf, toolsOf } from "./tools.ts";

const KNOWN: ReadonlySet<string> = new Set([...TOP, ...BESIDE]);

/** A client's body, whole: what only this protocol knows rides in `ext.gemini`, what no codec knows in `rest`. */
export function request(body: Body): ChatRequest {
  const fields = asked(inOneSpelling(body) as JsonObject);
  const config = object(fields["generationConfig"]) ?? {};
  const { choice, kept } = choiceOf(fields["toolConfig"]);
  const format = formatOf(config);
  const own: Record<string, Json | undefined> = { ...strangersIn(fields, KNOWN_INSIDE) };
  for (const field of PASSED) own[field] = fields[field] ?? undefined;
  if (kept !== undefined) own["toolConfig.functionCallingConfig"] = kept;
  if (format.kept !== undefined) own["generationConfig.responseMimeType"] = format.kept;
  return present({
    kind: "chat" as const,
    model: text(fields["model"]) ?? "",
    stream: fields["stream"] === true,
    instructions: instructionsOf(fields["systemInstruction"]),
    turns: turnsOf(fields["contents"]),
    tools: toolsOf(fields["tools"]),
    toolChoice: choice,
    output: present({
      maxTokens: number(config["maxOutputTokens"]),
      stop: stopOf(config["stopSequences"]),
      modalities: modalitiesOf(config["responseModalities"]),
      format: format.format,
    }),
    sampling: present({
      temperature: number(config["temperature"]),
      topP: number(config["topP"]),
      topK: number(config["topK"]),
      presence: number(config["presencePenalty"]),
      frequency: number(config["frequencyPenalty"]),
      seed: number(config["seed"]),
      n: number(config["candidateCount"]),
      logprobs: config["responseLogprobs"] === true ? (number(config["logprobs"]) ?? 0) : undefined,
    }),
    reasoning: reasoningOf(object(config["thinkingConfig"])),
    tier: tierOf(fields["serviceTier"]),
    state: present({ store: flag(fields["store"]) }),
    rest: unknownIn(fields, (field) => KNOWN.has(field)),
    // Always there, even empty: it says that the request came in this protocol.
    ext: { [ID]: some(own) ?? {} },
  });
}

/** A request to be counted may stand in a field of its own. */
function asked(fields: JsonObject): JsonObject {
  const inner = object(fields["generateContentRequest"]);
  if (!inner || fields["contents"] !== undefined) return fields;
  return { ...fields, generateContentRequest: undefined, ...inner, model: fields["model"] };
}

function stopOf(raw: Opt<Json>): readonly string[] | undefined {
  const stop = list(raw).flatMap((one) => text(one) || []);
  return stop.length > 0 ? stop : undefined;
}

function modalitiesOf(raw: Opt<Json>): readonly string[] | undefined {
  const all = list(raw).flatMap((one) => text(one)?.toLowerCase() ?? []);
  return all.length > 0 ? all : undefined;
}

/** `kept`: a form of text that the common vocabulary has no word for. */
function formatOf(config: JsonObject): { format: Output["format"]; kept?: Json } {
  const mime = text(config["responseMimeType"]);
  const schema = object(config["responseJsonSchema"]) ?? object(config["responseSchema"]);
  if (mime === "application/json")
    return {
      format: came<NonNullable<Output["format"]>>(
        schema ? { type: "schema", schema: schemaOf(schema) } : { type: "json" },
        said(config, ["responseMimeType", "responseSchema", "responseJsonSchema"]),
      ),
    };
  return { format: undefined, ...(mime !== undefined && mime !== "text/plain" && { kept: mime }) };
}

/** A model that thinks by itself is told nothing; what it is to show of that is asked for apart. */
function reasoningOf(config: JsonObject | undefined): Reasoning {
  if (!config) return { mode: "auto" };
  const level = text(config["thinkingLevel"])?.toLowerCase();
  const budget = number(config["thinkingBudget"]);
  const show = config["includeThoughts"] === true ? {} : ({ show: "none" } as const);
  const meant: Reasoning =
    level !== undefined && level !== "thinking_level_unspecified"
      ? { mode: "effort", effort: level, ...show }
      : budget === 0
        ? { mode: "off" }
        : budget !== undefined && budget > 0
          ? { mode: "budget", budget, ...show }
          : config["includeThoughts"] === true
            ? { mode: "auto", show: "summary" }
            : { mode: "auto" };
  return came(meant, said(config, ["includeThoughts", "thinkingBudget", "thinkingLevel"]));
}

const said = (of: JsonObject, names: readonly string[]): JsonObject =>
  present(Object.fromEntries(names.map((name) => [name, of[name]])));

/** As others say it: what is standard here is what goes without saying. */
function tierOf(raw: Opt<Json>): string | undefined {
  const tier = text(raw)
    ?.toLowerCase()
    .replace(/^service_tier_/, "");
  return tier === "standard" ? "default" : tier === "unspecified" ? undefined : tier;
}
