// What an observer's author may say and read, and what must not compile.
import {
  defineObserver,
  isJournal,
  type Observer,
  type QuarantinedHook,
  type RequestOutcome,
  type RequestRecord,
  type RequestRecordHook,
  type RequestRecordPassedOver,
} from "tollgate/plugin";
import { is, type Same } from "./same.ts";

export const book = defineObserver({
  api: 1,
  name: "book",
  summary: "x",
  sends: "nowhere",
  setup: () => ({
    clients: "prefix",
    told(notice) {
      if (notice.type === "reload_asked") is<Same<typeof notice.why, "signal" | "command">>();
      if (notice.type === "quarantined") {
        is<Same<typeof notice.why, QuarantinedHook["why"]>>();
        is<Same<typeof notice.failures, number>>();
        // @ts-expect-error  it is told, and decides nothing
        notice.until = 0;
      }
      // @ts-expect-error  what is over has no reason any more
      if (notice.type === "released") void notice.why;
    },
    seen(batch) {
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
export const full: Observer = { clients: "full" };
// @ts-expect-error  nothing, a network or all of it
export const some: Observer = { clients: "city" };
export const passed: RequestRecordPassedOver = {
  candidate: "acme/m",
  credential: "default",
  by: "rest",
  code: "overloaded",
};
// @ts-expect-error  a hook that let it pass and was not waited for is not told of
export const idle: RequestRecordHook = { plugin: "middleware.x", hook: "admit", did: "nothing" };

// ── one that writes lines asks where they go ──
is<Same<ReturnType<typeof isJournal>, boolean>>();
is<Same<Parameters<typeof isJournal>[0], string | undefined>>();
// @ts-expect-error  a file is its number
isJournal("1:2", "/dev/stdout");
