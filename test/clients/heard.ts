// An upstream's view of a request in any of the four protocols: enough to choose a response, and to
// detect invalid requests.
import assert from "node:assert/strict";
import { protocolAtPath, type UpstreamRequest } from "tollgate/testing";
import { judged } from "../protocols/gemini/judge.ts";

export interface Heard {
  /** All user text, joined. */
  readonly words: string;
  /** The last tool results. Empty if the user sent the last message. */
  readonly results: readonly string[];
  /** The declared tools. */
  readonly tools: readonly string[];
  readonly pictures: number;
}

export interface Said extends Heard {
  /** Calls in the history, and results that match one, by the protocol's link. */
  readonly calls: readonly string[];
  readonly answers: readonly string[];
}

/** Reason for a rejection. Undefined if it is valid. */
export function refusal(asked: UpstreamRequest): string | undefined {
  try {
    if (protocolAtPath(asked.path) === undefined) judged(asked.json());
    const { words, calls, answers, results, tools } = reads(asked);
    assert.ok(words.trim() !== "", "Nobody has asked anything.");
    for (const id of answers)
      assert.ok(calls.includes(id), `The result of ${id} answers no call in this conversation.`);
    for (const id of calls) assert.ok(answers.includes(id), `The call ${id} has no result.`);
    if (results.length > 0) assert.ok(tools.length > 0, "Results, and no tools are declared.");
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

export const heard = (asked: UpstreamRequest): Heard => reads(asked);

function reads(asked: UpstreamRequest): Said {
  const body = asked.json();
  const spoken = protocolAtPath(asked.path);
  if (spoken === "chat-completions") return inChat(body);
  if (spoken === "messages") return inMessages(body);
  return spoken === "responses" ? inResponses(body) : inGemini(body);
}

/** A content that is a string, or parts, some of which are text. */
const textOf = (content: unknown): string =>
  typeof content === "string"
    ? content
    : list(content)
        .map(({ text }) => text ?? "")
        .join("");
const list = (value: unknown): any[] => (Array.isArray(value) ? value : []);
/** The last items of a list that have a type. */
const tail = (all: readonly any[], is: (one: any) => boolean): any[] =>
  all.slice(all.findLastIndex((one) => !is(one)) + 1);

function inChat(body: any): Said {
  const turns = list(body.messages);
  const isResult = ({ role }: any) => role === "tool";
  const parts = turns.flatMap(({ content }) => list(content));
  return {
    words: turns
      .filter(({ role }) => role === "user")
      .map(({ content }) => textOf(content))
      .join("\n"),
    results: tail(turns, isResult).map(({ content }) => textOf(content)),
    tools: list(body.tools).map((tool) => tool.function?.name ?? tool.custom?.name),
    pictures: parts.filter(({ type }) => type === "image_url").length,
    calls: turns.flatMap(({ tool_calls: calls }) => list(calls).map(({ id }) => id)),
    answers: turns.filter(isResult).map(({ tool_call_id: id }) => id),
  };
}

function inMessages(body: any): Said {
  const turns = list(body.messages);
  const parts = turns.flatMap(({ content }) => list(content));
  const results = parts.filter(({ type }) => type === "tool_result");
  const last = list(turns.at(-1)?.content).filter(({ type }) => type === "tool_result");
  const inside = [...parts, ...results.flatMap(({ content }) => list(content))];
  return {
    words: turns
      .filter(({ role }) => role === "user")
      .map(({ content }) => textOf(content))
      .join("\n"),
    results: last.map(({ content }) => textOf(content)),
    tools: list(body.tools).map(({ name }) => name),
    pictures: inside.filter(({ type }) => type === "image").length,
    calls: parts.filter(({ type }) => type === "tool_use").map(({ id }) => id),
    answers: results.map(({ tool_use_id: id }) => id),
  };
}

function inResponses(body: any): Said {
  const items =
    typeof body.input === "string" ? [{ role: "user", content: body.input }] : list(body.input);
  const isResult = ({ type }: any) => (type ?? "").endsWith("_call_output");
  const parts = items.flatMap(({ content }) => list(content));
  return {
    words: items
      .filter(({ role }) => role === "user")
      .map(({ content }) => textOf(content))
      .join("\n"),
    results: tail(items, isResult).map(({ output }) => textOf(output)),
    tools: list(body.tools).map(({ name }) => name),
    pictures: parts.filter(({ type }) => type === "input_image").length,
    calls: items.filter(({ type }) => type === "function_call").map(({ call_id: id }) => id),
    answers: items.filter(isResult).map(({ call_id: id }) => id),
  };
}

/** Its calls may have no IDs, so their links are checked separately. */
function inGemini(body: any): Said {
  const turns = list(body.contents);
  const partsOf = (some: readonly any[]) => some.flatMap(({ parts }) => list(parts));
  const resultsIn = (some: readonly any[]) =>
    partsOf(some).flatMap(({ functionResponse: of }) =>
      of
        ? [
            String(
              of.response?.output ??
                of.response?.result ??
                of.response?.content ??
                JSON.stringify(of.response),
            ),
          ]
        : [],
    );
  return {
    words: textOf(partsOf(turns.filter(({ role }) => role === "user"))),
    results: resultsIn(turns.slice(-1)),
    tools: list(body.tools).flatMap(({ functionDeclarations: all }) =>
      list(all).map(({ name }) => name),
    ),
    pictures: partsOf(turns).filter(({ inlineData }) => inlineData).length,
    calls: [],
    answers: [],
  };
}
