// Generates the tables of docs/reference/translation/responses.md: the result of each response field for clients of each protocol.
import {
  getFault,
  collectResponse,
  type ClientHalf,
  type Operation,
  type ModelEvent,
} from "tollgate/plugin";
import { createResponseContext, createCallContext } from "tollgate/testing";
import { chats, TELL_ALL, upstreams } from "../generators/codecs.ts";
import { inGemini, inMessages, inResponses, inChat, type Row } from "../generators/answer-rows.ts";

const ROWS: { readonly [upstream: string]: readonly Row[] } = {
  "chat-completions": inChat,
  messages: inMessages,
  responses: inResponses,
  gemini: inGemini,
};

/** The client's view, or the failure if it has none. */
function heard(from: string, into: string, answer: object): string | { refused: string } {
  const events: ModelEvent[] = [];
  try {
    const { client } = upstreams[from]!;
    const body = Buffer.from(JSON.stringify(answer));
    (client as ClientHalf<Operation>).decodeResponse(
      body,
      (e) => events.push(e),
      createCallContext(),
      {},
    );
    return JSON.stringify(
      chats[into]!.server!.encodeResponse(
        collectResponse(events),
        createResponseContext({ body: TELL_ALL }),
      ),
    );
  } catch (error) {
    const fault = getFault(error);
    if (!fault) throw error;
    return { refused: fault.code ?? fault.kind };
  }
}

function verdict(from: string, into: string, [, more, plain]: Row): string {
  const now = heard(from, into, more);
  if (typeof now === "object") return `error (${now.refused})`;
  return now === heard(from, into, plain) ? "omitted" : "forwarded";
}

const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;

export const table = (from: string) => (): string =>
  [
    line(["Field", ...Object.keys(chats)]),
    line(["---", ...Object.keys(chats).map(() => "---")]),
    ...ROWS[from]!.map((row) =>
      line([row[0], ...Object.keys(chats).map((id) => verdict(from, id, row))]),
    ),
  ].join("\n");
