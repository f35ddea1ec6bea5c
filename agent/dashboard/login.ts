// Across a redirect without a fragment, the browser keeps that of the requested address. So a link to a drain survives the sign-in.
document.querySelector('form')?.setAttribute('action', `login${location.hash}`)
