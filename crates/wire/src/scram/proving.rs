//! SCRAM-SHA-256, the client's side: [`Prover`], then [`Answered`], which checks that the server knows the verifier.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rand::CryptoRng;
use subtle::ConstantTimeEq;
use thiserror::Error;
use zeroize::Zeroizing;

use super::{ClientKey, NONCE_BYTES, attribute, readable};
use crate::verifier::{Key, SCRAM_ITERATIONS_MAX, ScramVerifier, hmac, keys, sha256};

/// Why nothing was proved to a server, or the server proved nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProvingError {
    /// What the server says follows no grammar.
    #[error("malformed SCRAM message of the server")]
    Malformed,
    /// The nonce is not the one of this exchange.
    #[error("the server answers another SCRAM exchange")]
    Nonce,
    /// The server asks for more iterations than anybody should make.
    #[error("the server asks for {0} iterations")]
    Iterations(u32),
    /// The server keeps another verifier of the user than the cluster: the user's key proves nothing there.
    #[error("the server keeps another verifier of the user's password than the cluster")]
    VerifierDiffers,
    /// The server refuses the proof.
    #[error("the server refuses the proof: {0}")]
    Refused(String),
    /// The server could not show that it knows the verifier.
    #[error("the server does not prove that it knows the user's verifier")]
    Server,
}

/// What is proved with.
#[derive(Clone)]
pub enum Proof {
    /// A password.
    Password(Zeroizing<String>),
    /// The key that a client has proved with, to servers that keep this verifier of its user.
    Key(ClientKey, ScramVerifier),
}

impl Proof {
    /// The same for the same proof, and says nothing of it.
    pub fn fingerprint(&self) -> [u8; 32] {
        match self {
            Self::Password(password) => sha256(password.as_bytes()),
            Self::Key(key, _) => sha256(key.reveal()),
        }
    }
}

impl fmt::Debug for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Password(_) => "Proof by password",
            Self::Key(..) => "Proof by key",
        })
    }
}

/// A client that has not heard the server's challenge.
#[derive(Debug)]
pub struct Prover {
    proof: Proof,
    nonce: String,
}

/// A client that has proved, and waits for the server to do so.
#[derive(Debug)]
pub struct Answered {
    signature: Key,
}

impl Prover {
    /// Begins.
    pub fn new(proof: Proof, rng: &mut impl CryptoRng) -> Self {
        let mut nonce = [0; NONCE_BYTES];
        rng.fill_bytes(&mut nonce);
        Self { proof, nonce: BASE64.encode(nonce) }
    }

    /// The first message. The user's name is the startup packet's to tell.
    pub fn first(&self) -> String {
        format!("n,,n=,r={}", self.nonce)
    }

    /// Takes the server's challenge and makes the last message.
    ///
    /// # Errors
    /// When it is refused.
    pub fn answer(self, challenge: &[u8]) -> Result<(String, Answered), ProvingError> {
        let challenge = readable(challenge).map_err(|_| ProvingError::Malformed)?;
        let mut attributes = challenge.split(',');
        let mut next = |name| attribute(attributes.next(), name, "").map_err(|_| ProvingError::Malformed);
        let nonce = next("r=")?;
        let salt = BASE64.decode(next("s=")?).map_err(|_| ProvingError::Malformed)?;
        let iterations: u32 = next("i=")?.parse().map_err(|_| ProvingError::Malformed)?;
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err(ProvingError::Nonce);
        }
        if iterations > SCRAM_ITERATIONS_MAX {
            return Err(ProvingError::Iterations(iterations));
        }
        let (client_key, server_key) = match &self.proof {
            Proof::Password(password) => keys(password, &salt, iterations),
            Proof::Key(_, verifier) if verifier.salt != salt || verifier.iterations != iterations => {
                return Err(ProvingError::VerifierDiffers);
            }
            Proof::Key(key, verifier) => (Zeroizing::new(*key.reveal()), verifier.server_key),
        };
        let without_proof = format!("c={},r={nonce}", BASE64.encode("n,,"));
        let first = format!("n=,r={}", self.nonce);
        let signed: &[&[u8]] = &[first.as_bytes(), b",", challenge.as_bytes(), b",", without_proof.as_bytes()];
        let mut proof = hmac(&sha256(client_key.as_ref()), signed);
        for (byte, key) in proof.iter_mut().zip(client_key.iter()) {
            *byte ^= key;
        }
        let answer = format!("{without_proof},p={}", BASE64.encode(proof));
        Ok((answer, Answered { signature: hmac(&server_key, signed) }))
    }
}

impl Answered {
    /// Takes the server's last message.
    ///
    /// # Errors
    /// When it shows that one of both sides does not know what it should.
    pub fn check(self, last: &[u8]) -> Result<(), ProvingError> {
        let last = readable(last).map_err(|_| ProvingError::Malformed)?;
        if let Some(error) = last.strip_prefix("e=") {
            return Err(ProvingError::Refused(error.to_owned()));
        }
        let signature = last.strip_prefix("v=").and_then(|signature| BASE64.decode(signature).ok());
        let signature = signature.ok_or(ProvingError::Malformed)?;
        if bool::from(signature.as_slice().ct_eq(&self.signature)) { Ok(()) } else { Err(ProvingError::Server) }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail")]

    use crate::scram::{Channel, Exchange};

    use super::*;

    fn meet(verifier: &ScramVerifier, proof: Proof) -> Result<ClientKey, String> {
        let mut rng = rand::rng();
        let prover = Prover::new(proof, &mut rng);
        let exchange = Exchange::new(verifier.clone(), Channel::Unbound, &mut rng);
        let (challenge, challenged) = exchange.challenge(prover.first().as_bytes()).unwrap();
        let (answer, answered) = prover.answer(challenge.as_bytes()).map_err(|error| error.to_string())?;
        let proven = challenged.prove(answer.as_bytes()).map_err(|error| error.to_string())?;
        answered.check(proven.server_final.as_bytes()).map_err(|error| error.to_string())?;
        Ok(proven.client_key)
    }

    #[test]
    fn who_knows_the_password_proves_it_and_its_key_does_where_the_verifier_is_the_same() {
        let verifier = ScramVerifier::make("sekret", b"salt of one", 10);
        let key = meet(&verifier, Proof::Password(Zeroizing::new("sekret".to_owned()))).unwrap();
        assert_eq!(meet(&verifier, Proof::Key(key.clone(), verifier.clone())), Ok(key.clone()));
        let other = ScramVerifier::make("sekret", b"another salt", 10);
        let refused = meet(&other, Proof::Key(key, verifier.clone())).unwrap_err();
        assert_eq!(refused, ProvingError::VerifierDiffers.to_string());
        let wrong = meet(&verifier, Proof::Password(Zeroizing::new("wrong".to_owned()))).unwrap_err();
        assert_eq!(wrong, "invalid SCRAM proof");
    }

    #[test]
    fn a_server_that_does_not_know_the_verifier_is_found_out() {
        let prover = Prover::new(Proof::Password(Zeroizing::new("x".to_owned())), &mut rand::rng());
        let challenge = format!("r={}more,s=c2FsdA==,i=1", prover.nonce);
        let (_, answered) = prover.answer(challenge.as_bytes()).unwrap();
        let made_up = format!("v={}", BASE64.encode([7; 32]));
        assert_eq!(answered.check(made_up.as_bytes()), Err(ProvingError::Server));
    }

    #[test]
    fn challenges_that_make_no_sense_are_refused() {
        for challenge in ["", "r=x", "r=x,s=c2FsdA==,i=1", "r=x,s=*,i=1", "r=x,s=c2FsdA==,i=many"] {
            let prover = Prover::new(Proof::Password(Zeroizing::new("x".to_owned())), &mut rand::rng());
            assert!(prover.answer(challenge.as_bytes()).is_err(), "{challenge}");
        }
    }
}
