// The model's behavior in these runs. It only calls tools that the client declared.
import type { JsonObject } from "tollgate/plugin";
import {
  errorResponse,
  say,
  think,
  toolResults,
  type ScriptedResponse,
  type UpstreamRequest,
  type ModelScript,
} from "tollgate/testing";
import type { Call } from "./client.ts";
import type { Script } from "./stage.ts";

/** Cost of every response. */
export const USAGE = { input: 100, cache_read: 50, output: 20, reasoning: 8 };

/** Content of the files. */
export const NOTES = ["The bridge is «green» 🌉.", 'No, it is "red".'] as const;

/** One dot. */
export const PICTURE = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==",
  "base64",
);

export const answering = (text: string): ModelScript =>
  think("Let me think.", "signed").say(text).usage(USAGE);

/** Reasons, makes all calls in parallel, and then repeats the notes that it received. */
export const reading =
  (calls: readonly Call[]): Script =>
  (asked) => {
    const heard = toolResults(asked);
    // Clients run calls in parallel, and the faster one returns first.
    const found = NOTES.filter((note) => heard.some((text) => text.includes(note)));
    return heard.length > 0
      ? say(`I read: ${found.join(" ")}`).usage(USAGE)
      : calling(asked, calls, think("I should look.", "signed").say("I will look."));
  };

/** Requests an image until it has one. */
export const looking =
  (call: Call): Script =>
  (asked) =>
    /data:image\/png|"media_type":"image\/png"/.test(String(asked.body))
      ? say("A dot.").usage(USAGE)
      : calling(asked, [call]);

export const remembering =
  (words: readonly string[], then: string): Script =>
  (asked) =>
    say(words.every((one) => String(asked.body).includes(one)) ? then : "I forgot.").usage(USAGE);

/** The first time rejected, the second time truncated. */
export const stumbling =
  (text: string): Script =>
  (asked) => {
    if (asked.number === 1) return refusing(529, "Overloaded")(asked);
    const answer = answering(text);
    return asked.number === 2
      ? { ...answer.toResponse(asked), truncation: { after: { pieces: 8 }, how: "reset" } }
      : answer;
  };

export const refusing =
  (status: number, message: string): Script =>
  (asked) => {
    const answer = errorResponse(status, message);
    return typeof answer === "function" ? (answer(asked) as ScriptedResponse) : answer;
  };

export interface Declared {
  readonly name: string;
  readonly custom: boolean;
  readonly required: readonly string[];
}

/** The tools that a model may call, in any protocol. */
export function declaredIn(asked: UpstreamRequest): readonly Declared[] {
  const tools: readonly RawTool[] = asked.json().tools ?? [];
  return tools.flatMap((tool) => {
    const { name, parameters, input_schema } = { ...tool, ...tool.function };
    const { required = [] } = parameters ?? input_schema ?? {};
    return name === undefined ? [] : [{ name, custom: tool.type === "custom", required }];
  });
}

interface RawTool {
  readonly type?: string;
  readonly name?: string;
  readonly parameters?: Schema;
  readonly input_schema?: Schema;
  readonly function?: { readonly name: string; readonly parameters?: Schema };
}
type Schema = { readonly required?: readonly string[] };

function calling(
  asked: UpstreamRequest,
  calls: readonly Call[],
  from: ModelScript = think("Well.", "signed"),
) {
  const declared = declaredIn(asked);
  const fits = ({ tool, args }: Call) =>
    declared.some(({ name, required }) => name === tool && required.every((key) => key in args));
  const strange = calls.find((call) => !fits(call));
  if (strange) return say(`No such tool is declared: ${strange.tool}.`).usage(USAGE);
  const add = (speech: ModelScript, { tool, args }: { tool: string; args: JsonObject }) =>
    speech.call(tool, args);
  return calls.reduce(add, from).usage(USAGE);
}
