// What the gateway tells observers of itself.
import type { ErrorKind } from "../model/error.ts";
import type { LimitCrossing } from "./limit.ts";

/** Something that the gateway tells of itself. New types are added within api 1: what is not known is passed over. */
export type Notice = Readonly<{ at: number }> &
  (
    | Readonly<{
        /** A reload that was asked for, or that a changed file brought. */
        type: "reloaded";
        why: "file" | "signal" | "command";
        /** False: the config was refused, and the generation before goes on. */
        ok: boolean;
        /** The one that answers now. */
        generation: number;
      }>
    | Readonly<{
        /**
         * A signal or a command asks for a reload. Told before a file is read, and whether or not anything has changed: what keeps
         * a file open opens it anew, so that an old one may be put away.
         */
        type: "reload_asked";
        why: "signal" | "command";
      }>
    | Readonly<{
        /** After a failure a provider's credential, for one model or for all, is tried last for a while. */
        type: "rests";
        provider: string;
        credential: string;
        /** null: all of its models. */
        model: string | null;
        kind: ErrorKind;
        /** Unix milliseconds. */
        until: number;
      }>
    | Readonly<{
        /**
         * What has rested answers again: told once, by the first answer after the failure. Each process has its own view of
         * what rests, so with several workers a rest and its end may be told by each.
         */
        type: "recovered";
        provider: string;
        credential: string;
        /** null: it was all of its models. */
        model: string | null;
      }>
    | (Readonly<{
        /**
         * What a limit has counted went over 50, 80, 95 or 100 per cent of it, by day, week, month or in total. Once for each
         * crossing, over all processes and restarts: the settle that did it tells of it. A kill in that moment may lose it.
         */
        type: "budget_crossed";
      }> &
        Readonly<LimitCrossing>)
    | Readonly<{
        /** A key was made, given a new secret, or ended, while the gateway ran. */
        type: "key";
        change: "made" | "moved" | "rotated" | "revoked";
        /** Its id; no name, for that may be a person. */
        key: string;
      }>
    | Readonly<{
        /** Once for all processes. False: the ledger takes no rows, and new calls are refused. True: it takes them again. */
        type: "ledger";
        ok: boolean;
      }>
    | Readonly<{
        /** A worker process has ended by itself; another one takes its place. */
        type: "worker_gone";
        worker: number;
        pid: number;
        /** "SIGKILL", "exit code 1". */
        how: string;
        /** Calls that it had open, settled as estimated. */
        calls: number;
      }>
    | Readonly<{
        /** This observer was too slow: so many records were not kept for it since the last such notice. */
        type: "dropped";
        records: number;
      }>
  );
