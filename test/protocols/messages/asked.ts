// A codec's halves for requests, without a host.
import { expect } from "vitest";
import { getFault, type Fault } from "../../../src/model/error.ts";
import type { ModelInfo } from "../../../src/model/facts.ts";
import type { ChatRequest, Tool } from "../../../src/model/request.ts";
import type { Body } from "../../../src/model/values.ts";
import { messages, type MessagesDialect } from "../../../src/protocols/messages/index.ts";
import { createCallContext } from "../../../src/testing/codec-contexts.ts";
import { deepFreeze } from "../../../src/testing/freeze.ts";
import { server } from "./recorded.ts";
import { createChatRequest } from "../../kit/requests.ts";

export const decode = (body: object): ChatRequest =>
  server.decodeRequest(deepFreeze(body) as Body, "generate") as ChatRequest;

export const encode = (
  r: ChatRequest,
  dialect: MessagesDialect = {},
  more: { info?: Partial<ModelInfo>; op?: "count"; stream?: boolean } = {},
) => {
  const of = createCallContext({
    model: "m",
    ...(more.op && { actionType: more.op }),
    stream: more.stream ?? r.stream,
    info: { model: "m", operation: "chat", ...more.info },
  });
  const body = messages(dialect).client!.encodeRequest(deepFreeze(r), deepFreeze(of)) as Record<
    string,
    any
  >;
  return { body, losses: of.losses };
};

export const refusal = (run: () => unknown): Fault => {
  try {
    run();
  } catch (error) {
    return getFault(error) ?? expect.unreachable(String(error));
  }
  return expect.unreachable("nothing was refused");
};

/** As another protocol's server half decodes it. */
export const asked = (more: Partial<ChatRequest> = {}): ChatRequest =>
  createChatRequest({ model: "p/m", output: { maxTokens: 100 }, ...more });

export const f: Tool = { type: "function", name: "f", schema: { type: "object", properties: {} } };
