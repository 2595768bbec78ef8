// Describes videos for operators, and reports how they ended.
import type { JobDescription, JobKind, JobRecord } from "tollgate/plugin";
import { isOpen, OPEN_STATES, parseVideo, VIDEO_KIND } from "./video-record.ts";

export const videoKind: JobKind = {
  kind: VIDEO_KIND,
  openStates: OPEN_STATES,
  describe: describeVideo,
};

function describeVideo(record: JobRecord): JobDescription | undefined {
  const video = parseVideo(record);
  const { state, isQueued, model, target, progress = 0, costNano, endedAt, end, origin } = video;
  if (state === "reserving") return undefined;
  const common = {
    id: `video_${record.id}`,
    model,
    providers: [target.provider],
    origin,
    costNano: costNano === undefined ? undefined : BigInt(costNano),
  };
  if (isOpen(state)) {
    const status = isQueued || state === "submitting" ? "queued" : "running";
    return { ...common, status, progress: { total: 100, done: Math.floor(progress), failed: 0 } };
  }
  const isComplete = state === "completed";
  return {
    ...common,
    status: isComplete ? "completed" : state === "expired" ? "expired" : "failed",
    progress: { total: 100, done: 100, failed: isComplete ? 0 : 100 },
    endedAt,
    message: end?.error?.message,
    event: isComplete ? "video.completed" : "video.failed",
  };
}
