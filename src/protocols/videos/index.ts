// tollgate/protocols/videos: OpenAI's API for videos. Videos are jobs, so the protocol has no codecs:
// its frontend decodes requests, and providers implement `EndpointVideos`.
import { videoOperation } from "../../model/operations/video-operation.ts";
import type { Protocol } from "../../plugin/protocol.ts";

export { decodeVideoRequest, readPrompt } from "./request.ts";
export { fetchContent, openAiVideos, type VideoDialect } from "./openai-videos.ts";

export const videos = (): Protocol<"video"> => ({
  id: "videos",
  operationSpec: videoOperation,
  runsJobs: true,
});
