// What an observer's author may say and read, and what must not compile.
import {
  defineObserver,
  isSystemdJournal,
  type Observer,
  type QuarantinedHook,
  type RequestOutcome,
  type RequestRecord,
  type RequestRecordHook,
  type RequestRecordSkippedCandidate,
} from "tollgate/plugin";
import { is, type Same } from "./same.ts";

export const book = defineObserver({
  api: 1,
  name: "book",
  summary: "x",
  sends: "nowhere",
  setup: () => ({
    clientAddress: "prefix",
    onEvent(notice) {
      if (notice.type === "reload_requested")
        is<Same<typeof notice.trigger, "signal" | "command">>();
      if (notice.type === "quarantined") {
        is<Same<typeof notice.reason, QuarantinedHook["reason"]>>();
        is<Same<typeof notice.failures, number>>();
        // @ts-expect-error  it is told, and decides nothing
        notice.until = 0;
      }
      // @ts-expect-error  what is over has no reason any more
      if (notice.type === "released") void notice.why;
    },
    onRequests(batch) {
      for (const record of batch) {
        is<Same<typeof record, RequestRecord>>();
        is<Same<typeof record.outcome, RequestOutcome>>();
        is<Same<NonNullable<typeof record.client>, string>>();
        is<Same<NonNullable<(typeof record.calls)[number]>["startMs"], number>>();
        // @ts-expect-error  a client that sent no id has none
        void record.clientRequestId.length;
        // @ts-expect-error  a record is read, and others read it too
        record.outcome = "ok";
        // @ts-expect-error  no such end
        void (record.outcome === "failed");
      }
    },
  }),
});
export const full: Observer = { clientAddress: "full" };
// @ts-expect-error  nothing, a network or all of it
export const some: Observer = { clientAddress: "city" };
export const passed: RequestRecordSkippedCandidate = {
  candidate: "acme/m",
  credential: "default",
  by: "cooldown",
  code: "overloaded",
};
// @ts-expect-error  a hook that let it pass and was not waited for is not told of
export const idle: RequestRecordHook = { plugin: "middleware.x", hook: "admit", effect: "nothing" };

// ── one that writes lines asks where they go ──
is<Same<ReturnType<typeof isSystemdJournal>, boolean>>();
is<Same<Parameters<typeof isSystemdJournal>[0], string | undefined>>();
// @ts-expect-error  a file is its number
isSystemdJournal("1:2", "/dev/stdout");
