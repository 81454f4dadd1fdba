// A Probot app that does nothing: what it costs Probot to check a delivery and find its handler. Nothing is kept.
//
// GITHUB_APP_PRIVATE_KEY and GITHUB_WEBHOOK_SECRET come from the environment; the port is printed when it listens.

import { createServer } from "node:http";

import { createNodeMiddleware, createProbot } from "probot";

const probot = createProbot({
  overrides: {
    appId: 1,
    privateKey: process.env.GITHUB_APP_PRIVATE_KEY,
    secret: process.env.GITHUB_WEBHOOK_SECRET,
    logLevel: "fatal",
  },
});

const middleware = await createNodeMiddleware((app) => app.on("pull_request", async () => {}), {
  probot,
  webhooksPath: "/webhooks/github",
});

const server = createServer((request, response) => {
  middleware(request, response, () => response.writeHead(404).end());
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
