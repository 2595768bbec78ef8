// The lines of result files, in the formats of OpenAI and Anthropic.
import { ERRORS, type Fault, type LineResponse } from "tollgate/plugin";
import { images } from "tollgate/protocols/images";
import { messages } from "tollgate/protocols/messages";
import type { BatchOutcome } from "./batch-record.ts";

const openai = images().server!;
const anthropic = messages().server!;

export interface ResultFormat {
  /** Whether lines that failed are in a separate file. */
  readonly hasErrorFile: boolean;
  encodeResponse(
    n: number,
    customId: string,
    response: Pick<LineResponse, "status" | "requestId" | "body">,
  ): string;
  /** Encodes a line that was rejected when the batch was created. */
  encodeFault(
    n: number,
    customId: string,
    fault: Pick<Fault, "kind" | "message" | "code" | "param">,
  ): string;
  /** Encodes a line that did not run, or whose result is lost. */
  encodeUnrun(
    n: number,
    customId: string,
    outcome: Exclude<BatchOutcome, "completed">,
    message?: string,
  ): string;
}

const UNRUN_MESSAGES = {
  canceled: "The batch was canceled before this request ran.",
  expired: "This request could not be executed before the completion window expired.",
  failed: "The provider rejected the batch.",
  lost: "The result of this request is not available.",
  unreadable: "The provider's results could not be read for a day.",
} as const;

const requestIdOf = (n: number): string => `batch_req_${n}`;
const oneLine = (json: string): string =>
  /[\r\n]/.test(json) ? JSON.stringify(JSON.parse(json)) : json;

export const resultFormats: { readonly openai: ResultFormat; readonly anthropic: ResultFormat } = {
  openai: {
    hasErrorFile: true,
    encodeResponse: (n, id, { status, requestId, body }) =>
      `{"id":"${requestIdOf(n)}","custom_id":${JSON.stringify(id)},"response":{"status_code":${status},"request_id":${JSON.stringify(requestId)},"body":${oneLine(body)}},"error":null}`,
    encodeFault: (n, id, fault) => {
      const requestId = requestIdOf(n);
      const { status, body } = openai.encodeFault(fault, { id: requestId });
      return JSON.stringify({
        id: requestId,
        custom_id: id,
        response: {
          status_code: status ?? ERRORS[fault.kind][0],
          request_id: requestId,
          body,
        },
        error: null,
      });
    },
    encodeUnrun: (n, id, outcome, message = UNRUN_MESSAGES[outcome]) =>
      JSON.stringify({
        id: requestIdOf(n),
        custom_id: id,
        response: null,
        error: { code: `batch_${outcome === "canceled" ? "cancelled" : outcome}`, message },
      }),
  },
  anthropic: {
    hasErrorFile: false,
    encodeResponse: (_, id, { status, body }) =>
      status < 400
        ? `{"custom_id":${JSON.stringify(id)},"result":{"type":"succeeded","message":${oneLine(body)}}}`
        : `{"custom_id":${JSON.stringify(id)},"result":{"type":"errored","error":${oneLine(body)}}}`,
    encodeFault: (n, id, fault) => {
      const { body } = anthropic.encodeFault(fault, { id: requestIdOf(n) });
      return JSON.stringify({
        custom_id: id,
        result: { type: "errored", error: body },
      });
    },
    encodeUnrun: (n, id, outcome, message = UNRUN_MESSAGES[outcome]) => {
      if (outcome === "canceled" || outcome === "expired")
        return JSON.stringify({ custom_id: id, result: { type: outcome } });
      const { body } = anthropic.encodeFault({ kind: "upstream", message }, { id: requestIdOf(n) });
      return JSON.stringify({
        custom_id: id,
        result: { type: "errored", error: body },
      });
    },
  },
};
