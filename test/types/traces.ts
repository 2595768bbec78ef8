// Where a request stands in a trace, what an observer does at its end, and addresses that a platform gives by a variable.
import { defineObserver, type RequestRecordCall, type RequestTrace } from "tollgate/plugin";
import { is, type Same } from "./same.ts";

is<Same<RequestTrace["sampled"], boolean | undefined>>();

const x = { api: 1, name: "x", summary: "x", sends: "nowhere" } as const;
export const observer = defineObserver({
  ...x,
  options: {
    type: "object",
    additionalProperties: false,
    properties: { to: { type: "string", description: "Where" } },
  },
  needs: {
    env: ["COLLECTOR"],
    origins: ({ to }, env) => {
      is<Same<ReturnType<typeof env>, string | undefined>>();
      return [to ?? env("COLLECTOR") ?? "http://localhost:4318"];
    },
  },
  setup: () => {
    const waiting: string[] = [];
    return {
      onRequests(batch) {
        for (const { trace, calls } of batch) {
          waiting.push(trace.traceId, trace.parentId ?? "", ...calls.map(({ spanId }) => spanId));
          // @ts-expect-error  a request that begins its trace has no parent
          waiting.push(trace.parentId);
          // @ts-expect-error  it is what it was
          trace.spanId = "";
        }
      },
      async flush() {
        waiting.length = 0;
      },
    };
  },
});

// @ts-expect-error  an attempt always has a span of its own
export const call: Pick<RequestRecordCall, "spanId"> = {};
// @ts-expect-error  so has a request
export const trace: RequestTrace = { traceId: "4bf92f3577b34da6a3ce929d0e0e4736" };
// @ts-expect-error  at its end it is handed nothing
defineObserver({ ...x, setup: () => ({ flush: (batch: readonly unknown[]) => void batch }) });
// @ts-expect-error  a variable is read by its name
defineObserver({ ...x, needs: { origins: (_o, env) => [env() ?? ""] }, setup: () => ({}) });
