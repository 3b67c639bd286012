export type {
  ApprovalNotification,
  IncompleteNotification,
  Notification,
  NotificationLink,
  Notifier,
} from "../core/notification.ts";
export { type CommandNotifierOptions, commandNotifier } from "./command-notifier.ts";
export { consoleNotifier } from "./console-notifier.ts";
export { fileNotifier } from "./file-notifier.ts";
export { type WebhookNotifierOptions, webhookNotifier } from "./webhook-notifier.ts";
export { signWebhook } from "./webhook-signature.ts";
export {
  type ReceivedWebhook,
  type VerifiedWebhook,
  verifyWebhook,
  WEBHOOK_SCHEMES,
  type WebhookDedupe,
  type WebhookHeaders,
  type WebhookScheme,
} from "./webhook-verification.ts";
