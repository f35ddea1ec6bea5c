// A redirect keeps the fragment of the address that was asked for, if it has none of its own. So a link to a drain survives the sign-in.
document.querySelector('form')?.setAttribute('action', `login${location.hash}`)
