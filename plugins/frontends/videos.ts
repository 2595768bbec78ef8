// Frontend for /v1/videos, for OpenAI's SDKs. Videos are jobs: the gateway stores a record of each,
// polls the provider, and bills the video when it has ended.
import { defineFrontend } from "tollgate/plugin";
import { images } from "tollgate/protocols/images";
import { videos } from "tollgate/protocols/videos";
import { acceptOption, extractCredential } from "./client-credential.ts";
import { VideoEngine } from "./videos/video-engine.ts";
import { videoKind } from "./videos/video-kind.ts";
import { failWithoutJobs, VideoRecords } from "./videos/video-record.ts";
import { videoRoutes } from "./videos/video-routes.ts";
import { VideoService } from "./videos/video-service.ts";

const openai = images().server!;
const DAY_MS = 24 * 3_600_000;

export default defineFrontend({
  api: 1,
  name: "videos",
  summary: "Serve OpenAI's videos at /v1/videos",
  stability: "experimental",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      accept: acceptOption("bearer", "api-key"),
      keep_days: {
        type: "integer",
        minimum: 1,
        maximum: 365,
        default: 30,
        description:
          "Number of days for which an ended video is listed. Providers delete content earlier",
      },
    },
  },
  setup({ accept: schemes, keep_days }, ctx) {
    const records = new VideoRecords(() => ctx.jobs ?? failWithoutJobs());
    const engine = new VideoEngine(ctx, records, keep_days * DAY_MS);
    if (ctx.jobs) engine.start();
    return {
      protocol: videos(),
      extractCredential: (headers) => extractCredential(headers, schemes),
      encodeFault: (fault, _x, to) => openai.encodeFault(fault, to),
      routes: videoRoutes(new VideoService(ctx, records, engine.wake)),
      jobKinds: [videoKind],
    };
  },
});
